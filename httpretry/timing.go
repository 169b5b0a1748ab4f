package httpretry

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/internal/eventstream"
	"github.com/forbear-go/forbear/internal/grpcwire"
	"github.com/forbear-go/forbear/internal/resend"
)

// What the time of an attempt bounds is the server's part: the connection and its
// handshake, and the wait for the headers of the response once the request was
// sent. While a body moves, in either direction, only its standing still is bounded.

// unhurried reports whether a body may have nothing to say for any time: a stream of
// events, and the messages of gRPC, whose deadline is their own.
func unhurried(h http.Header) bool { return eventstream.Is(h) || grpcwire.Is(h) }

// explain names the cause of an error: the attempt's own timeout, or a re-send
// that was stopped. net/http knows both only as a canceled context.
func (a *attempt) explain(err error) error {
	switch {
	case err == nil || a.ctx.Err() == nil || a.parent.Err() != nil:
		return err
	case a.guard.Stopped():
		return resend.Err
	case a.watching() && a.upload.stood():
		return &timeoutError{stoodStill, a.idle, err}
	default:
		return &timeoutError{tookTooLong, a.limit, err}
	}
}

// watching reports whether the attempt watches an upload.
func (a *attempt) watching() bool { return a.upload != nil }

// stopTimer lets the attempt go on without a timeout. It starts none anew.
func (a *attempt) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// end releases what the attempt holds. It may be called more than once.
func (a *attempt) end() {
	a.stopTimer()
	a.cancel()
	if place := a.place.Swap(nil); place != nil {
		place.Leave()
	}
}

// timeoutError is the end of an attempt by a timeout of its own. It is a net.Error.
type timeoutError struct {
	what  string
	after time.Duration
	err   error
}

const (
	tookTooLong = "attempt timed out after "
	stoodStill  = "the body stood still for "
)

func (e *timeoutError) Error() string { return e.what + e.after.Round(time.Millisecond).String() }

// Unwrap keeps the context's error to itself: it is canceled by the timeout,
// and a caller that asks for [context.Canceled] asks about its own.
func (e *timeoutError) Unwrap() error {
	if errors.Is(e.err, context.Canceled) {
		return nil
	}
	return e.err
}

// Timeout, Temporary and Is make it what callers know a timeout by: a net.Error,
// and [context.DeadlineExceeded] for errors.Is.
func (e *timeoutError) Timeout() bool        { return true }
func (e *timeoutError) Temporary() bool      { return true }
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
