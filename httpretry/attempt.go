package httpretry

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/visit"
	"github.com/forbear-go/forbear/internal/resend"
)

// attempt is one send: the cloned request, its timeout, its watch over
// net/http's re-sends, and later the body of its response. It is one
// allocation, because it is made for every request.
type attempt struct {
	ctx    context.Context // ends with the attempt
	parent context.Context // what ctx was derived from
	cancel context.CancelFunc
	timer  *time.Timer   // nil for no timeout
	limit  time.Duration // of the server's part, up to the headers of its response
	idle   time.Duration // of a body that stands still; 0 sets no bound

	req    *http.Request // the clone
	body   responseBody
	place  atomic.Pointer[breaker.Bulkhead] // given back with the body, or nil
	clone  http.Request
	guard  resend.Guard
	visit  visit.Visit
	upload *upload   // nil when the body is not watched
	heard  uint64    // how many responses the transport had when it began
	silent bool      // its connection is dead, as far as can be told
	number [1]string // the value of HeaderAttempt
	due    [1]string // that of HeaderDeadline
}

// newAttempt clones the request for the attempt that call is about to make.
func (x *exchange) newAttempt(call *edge.Call) (*attempt, error) {
	t, a := x.t, &attempt{}
	a.parent = call.Context(x.req.Context())
	var last *visit.Visit
	if x.at != nil {
		last = &x.at.visit
	}
	a.visit.Begin(a.parent, last)
	a.ctx, a.cancel = context.WithCancel(&a.visit)
	a.heard, a.guard.Fresh = t.heard.Load(), x.lost
	a.clone = *x.req.WithContext(a.guard.Watch(a.ctx, a.cancel))
	a.req = &a.clone
	x.setBody(a)
	if x.unkeyed {
		a.req.GetBody = nil
	}
	x.setHeaders(a, call.Attempt())
	if err := x.authorize(a, call); err != nil {
		return a, err
	}
	a.limit, a.idle = call.Limit(x.timeout), x.idle
	if x.envelope != nil {
		var err error
		if a.limit, err = x.envelope.Send(a.req, call.Attempt(), a.limit); err != nil {
			return a, err
		}
	}
	a.guard.Sending(a.req, t.next)
	ended := a.cancel
	if watched(a.req) {
		ended = a.watchUpload()
	}
	if !t.noTimeout {
		a.timer = time.AfterFunc(a.limit, ended)
	}
	return a, nil
}

// What the time of an attempt bounds is the server's part: the connection and its
// handshake, and the wait for the headers of the response once the request was
// sent. While a body moves, in either direction, only its standing still is bounded.

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
	stoodStill  = "the body stalled for "
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
