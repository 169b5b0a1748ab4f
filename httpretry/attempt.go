package httpretry

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/resend"
)

// attempt is one send: the cloned request, its timeout, its watch over
// net/http's re-sends, and later the body of its response. It is one
// allocation, because it is made for every request.
type attempt struct {
	ctx    context.Context // ends with the attempt
	parent context.Context // what ctx was derived from
	cancel context.CancelFunc
	timer  *time.Timer
	limit  time.Duration

	req  *http.Request // the clone, or the caller's own when nothing changes
	body responseBody

	*extras // nil in the bare attempts of a transport with everything off
}

// extras is the larger part of an attempt.
type extras struct {
	clone  http.Request
	guard  resend.Guard
	number [1]string // the value of HeaderAttempt
	due    [1]string // that of HeaderDeadline
}

// full is an attempt with its extras, in one piece.
type full struct {
	attempt
	rest extras
}

// newAttempt clones the request for the attempt that call is about to make.
func (x *exchange) newAttempt(call *forbear.Call) (*attempt, error) {
	t := x.t
	if t.noHeader && t.noTimeout && t.noTrace && x.key == "" &&
		t.credentials == nil && x.envelope == nil && !x.numbered() {
		return x.bareAttempt(call), nil
	}
	f := &full{}
	a := &f.attempt
	a.extras = &f.rest
	a.parent = call.Context(x.req.Context())
	a.ctx = a.parent
	if !t.noTimeout || !t.noTrace {
		a.ctx, a.cancel = context.WithCancel(a.parent)
	}
	ctx := a.ctx
	if !t.noTrace {
		ctx = a.guard.Watch(ctx, a.cancel)
	}
	a.clone = *x.req.WithContext(ctx)
	a.req = &a.clone
	x.setBody(a.req)
	x.setHeaders(a, call.Attempt())
	if err := x.authorize(a, call); err != nil {
		return a, err
	}
	limit := call.Limit(x.timeout)
	if x.envelope != nil {
		var err error
		if limit, err = x.envelope.Send(a.req, call.Attempt(), limit); err != nil {
			return a, err
		}
	}
	if !t.noTimeout {
		a.limit = limit
		a.timer = time.AfterFunc(a.limit, a.cancel)
	}
	return a, nil
}

// bareAttempt is newAttempt for a transport that adds nothing. Nothing of such
// an attempt is left when the next one begins, so that one serves the call.
func (x *exchange) bareAttempt(call *forbear.Call) *attempt {
	if x.bare == nil {
		x.bare = &attempt{}
	}
	a := x.bare
	a.req = x.req
	if call.Attempt() > 1 || x.body != nil {
		a.req = x.req.WithContext(call.Context(x.req.Context()))
		x.setBody(a.req)
	}
	return a
}

// numbered reports whether the caller's request has an attempt number of its
// own, which it must not have got from the request that the caller is serving.
func (x *exchange) numbered() bool { return len(x.req.Header[HeaderAttempt]) > 0 }

// setHeaders gives the clone a header map of its own. The values are shared
// with the caller's request: the transport only adds keys.
func (x *exchange) setHeaders(a *attempt, number int) {
	t := x.t
	if t.noHeader && x.key == "" && t.credentials == nil && !x.numbered() {
		return
	}
	due, timed := a.parent.Deadline()
	timed = timed && !t.noHeader
	// As large as need be: maps of up to eight keys are far cheaper.
	h := make(http.Header, len(a.req.Header)+count(!t.noHeader, timed, x.key != "", t.credentials != nil))
	maps.Copy(h, a.req.Header)
	if t.noHeader {
		delete(h, HeaderAttempt)
	} else {
		a.number[0] = strconv.Itoa(number - 1)
		h[HeaderAttempt] = a.number[:1:1]
	}
	if timed { // the deadline travels on, less what is kept for the way back
		a.due[0] = strconv.FormatInt(due.Add(-SafetyMargin).UnixMilli(), 10)
		h[HeaderDeadline] = a.due[:1:1]
	}
	if x.key != "" {
		h[HeaderKey] = []string{x.key}
	}
	a.req.Header = h
}

// count returns how many of the facts hold.
func count(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

// explain names the cause of an error: the attempt's own timeout, or a re-send
// that was stopped. net/http knows both only as a canceled context.
func (a *attempt) explain(err error) error {
	switch {
	case err == nil || a.cancel == nil || a.ctx.Err() == nil || a.parent.Err() != nil:
		return err
	case a.extras != nil && a.guard.Stopped():
		return resend.Err
	default:
		return &timeoutError{after: a.limit, err: err}
	}
}

// maxTimedBody is the largest declared length that must arrive within the
// attempt's timeout; a longer body, or one of unknown length, may stream.
const maxTimedBody = 1 << 20

// handOver gives the response to the caller. The attempt's context lives until
// its body is closed or at its end.
func (a *attempt) handOver(resp *http.Response) {
	if a.cancel == nil {
		return
	}
	_, duplex := resp.Body.(io.Writer)
	if resp.StatusCode == http.StatusSwitchingProtocols || duplex {
		a.stopTimer() // the connection is the caller's from here on
		return
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		a.end()
		return
	}
	stream := resp.ContentLength < 0 || resp.ContentLength > maxTimedBody
	if stream {
		a.stopTimer() // it starts anew with each read
	}
	a.body.ReadCloser, a.body.a, a.body.stream = resp.Body, a, stream
	resp.Body = &a.body
}

// stopTimer lets the attempt go on without a timeout. It starts none anew.
func (a *attempt) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// end releases what the attempt holds. It may be called more than once.
func (a *attempt) end() {
	a.stopTimer()
	if a.cancel != nil {
		a.cancel()
	}
}

// timeoutError is the end of an attempt by its own timeout. It is a net.Error.
type timeoutError struct {
	after time.Duration
	err   error
}

func (e *timeoutError) Error() string {
	return "attempt timed out after " + e.after.Round(time.Millisecond).String()
}

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
