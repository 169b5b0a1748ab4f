package httpretry

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
)

// handOver gives the response to the caller; e says why it is a failure, or is nil.
// The attempt lives until the body is closed or at its end.
func (x *exchange) handOver(a *attempt, resp *http.Response, e *forbear.Error) {
	x.belongs(a, resp, e)
	if a.watching() {
		a.upload.leave()
	}
	a.stopTimer() // while a body moves it starts anew, with each read
	conn, duplex := resp.Body.(io.ReadWriteCloser)
	none := resp.Body == nil || resp.Body == http.NoBody
	switch {
	case duplex: // 101: the connection is the caller's from here on
		resp.Body = &upgraded{conn, a}
	case none:
		if a.end(); e != nil {
			resp.Body = a.wrap(http.NoBody, e)
		}
	default:
		a.body.idle = a.idleOf(resp)
		resp.Body = a.wrap(resp.Body, e)
	}
}

// belongs makes resp a response to the caller's own request, with all that the
// exchange has for it: cookies, and the place in the bulkhead, which the attempt
// keeps from then on.
func (x *exchange) belongs(a *attempt, resp *http.Response, e *forbear.Error) {
	resp.Request = x.asked(a, e)
	x.handCookies(resp)
	a.place.Store(x.place)
	x.place = nil
}

// wrap returns the body that ends the attempt; e is its outcome, or nil.
func (a *attempt) wrap(body io.ReadCloser, e *forbear.Error) io.ReadCloser {
	a.body.ReadCloser, a.body.a, a.body.outcome = body, a, e
	return &a.body
}

// asked returns the request that a response belongs to: the caller's, whose context
// outlives the attempt's. With a key that forbear made, which a redirect is to carry
// on, it is a copy that says what was sent; and so it is with an outcome.
func (x *exchange) asked(a *attempt, e *forbear.Error) *http.Request {
	if x.key == "" && e == nil {
		return x.req
	}
	ctx := x.req.Context()
	if e != nil {
		ctx = context.WithValue(ctx, outcomeKey{}, e)
	}
	req := x.req.WithContext(ctx)
	req.Header = a.req.Header
	return req
}

// responseBody is the body of a response that was handed over. It ends the attempt
// when it is closed or used up. Like those of net/http it may be closed while it is
// being read.
type responseBody struct {
	io.ReadCloser
	a       *attempt
	idle    time.Duration
	outcome *forbear.Error // why the response is a failure, or nil
	done    atomic.Bool
}

// Read gives the server a whole idle time for each read, and takes the timer away
// while the caller is busy with what it got.
func (b *responseBody) Read(p []byte) (int, error) {
	timed := b.idle > 0 && !b.done.Load()
	if timed {
		b.time(true)
	}
	n, err := b.ReadCloser.Read(p)
	if timed {
		b.time(false) // a slow reader is not a server that stalls
	}
	if err != nil {
		if err != io.EOF && err != errDropped && !b.done.Load() {
			err = b.explain(err)
		}
		b.done.Store(true)
		b.a.end()
	}
	return n, err
}

// time lets the attempt's timer run for a Read.
func (b *responseBody) time(on bool) {
	switch {
	case b.a.watching():
		b.a.upload.reads(on)
	case on:
		b.a.timer.Reset(b.idle)
	default:
		b.a.timer.Stop()
	}
}

// explain names the cause of an error, of which there is one more than before the
// headers: the body stood still.
func (b *responseBody) explain(err error) error {
	err = b.a.explain(err)
	if late, ok := err.(*timeoutError); ok {
		late.what, late.after = stoodStill, b.idle
	}
	return err
}

// Close sets done before anything else, so that the error of a Read under way is
// not explained as a timeout.
func (b *responseBody) Close() error {
	b.done.Store(true)
	err := b.ReadCloser.Close()
	b.a.end()
	return err
}

// upgraded is a connection that has changed its protocol. Nothing of the attempt is
// left when it is closed.
type upgraded struct {
	io.ReadWriteCloser
	a *attempt
}

// Close closes the connection.
func (u *upgraded) Close() error {
	err := u.ReadWriteCloser.Close()
	u.a.end()
	return err
}

// CloseWrite closes the way to the server alone, where the connection can.
func (u *upgraded) CloseWrite() error {
	if c, ok := u.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}

// outcomeKey is where a request's context has the outcome. The body of the response
// has it, too: what wraps a transport may replace either, and seldom both.
type outcomeKey struct{}

// Outcome returns why a transport of this package stopped retrying and handed
// resp over as it was. ok is false for a response that is not a failure, or
// that did not come through such a transport.
func Outcome(resp *http.Response) (e *forbear.Error, ok bool) {
	if resp == nil {
		return nil, false
	}
	if resp.Request != nil {
		if e, ok = resp.Request.Context().Value(outcomeKey{}).(*forbear.Error); ok {
			return e, true
		}
	}
	if b, had := resp.Body.(*responseBody); had && b.outcome != nil {
		return b.outcome, true
	}
	return nil, false
}
