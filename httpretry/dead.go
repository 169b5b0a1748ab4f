package httpretry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/internal/window"
)

// patience is how long a connection of HTTP/2 on which an attempt has timed out may take
// to show life: a quarter of the policy's time for one where that is less than usual.
func (x *exchange) patience() time.Duration {
	if quarter := x.timeout / 4; quarter > 0 {
		return min(resend.Patience, quarter)
	}
	return resend.Patience
}

// bury looks at the connection of a failed attempt. One that may be dead is not used by
// the next attempt of the call, nor are those that have been idle since; where nothing
// has come from anywhere since the attempt began all idle ones are closed, for other
// calls too. Such a failure says nothing about the dependency, and no budget refuses the
// attempt that finds out.
func (x *exchange) bury(a *attempt, call *edge.Call, err error) {
	since, reused := a.guard.Reused()
	if !reused {
		return
	}
	x.lost = since
	late, _ := errors.AsType[*timeoutError](err)
	wait := x.patience()
	switch {
	case late != nil && !a.guard.HTTP2():
		a.silent = true
	case late != nil && call.Limit(wait) == wait:
		a.silent = a.guard.Bury(x.req.Context(), wait)
	case late != nil, x.req.Context().Err() == context.DeadlineExceeded: // no time to hear what comes of it
		go a.guard.Bury(context.WithoutCancel(x.req.Context()), wait)
	case a.guard.HTTP2() && errors.Is(err, net.ErrClosed): // another attempt has closed it
		a.silent = true
	case a.guard.HTTP2() && x.req.Context().Err() != nil:
		go a.guard.Heed(context.WithoutCancel(x.req.Context()), wait)
		return
	default:
		return
	}
	nothing := a.heard == x.t.heard.Load()
	if nothing {
		x.t.CloseIdleConnections()
	}
	a.silent = a.silent && (a.guard.HTTP2() || x.t.forgotten(a.heard, nothing))
}

// incidents is how far apart those are that are taken for forgotten connections. Over
// HTTP/1 a dependency that does not respond now and then looks the same to a caller that
// makes one call after the other, and is to be counted and bounded as such.
const incidents = 30 * time.Second

// forgotten reports whether attempts that began when so many responses had come met an
// incident: nothing has come since, or what has came over new connections.
func (t *transport) forgotten(heard uint64, nothing bool) bool {
	if t.flushed.Load() == heard+1 {
		return true
	}
	now := int64(time.Since(window.Epoch()))
	last := t.incident.Load()
	if !nothing || last != 0 && now-last < int64(incidents) || !t.incident.CompareAndSwap(last, now) {
		return false
	}
	t.flushed.Store(heard + 1)
	return true
}

// A server of HTTP/2 disowns requests every day: the streams above the last one that its
// GOAWAY names, when it recycles a connection (RFC 9113 section 6.8). They may be sent
// again, whatever the method. net/http does so by itself, but also after a reset with
// PROTOCOL_ERROR, when the request may have been processed; the guard stops both, and
// cannot tell them apart. So net/http is not given the means to begin the body of a POST
// without a key anew over HTTP/2: it then says why it would have. Over HTTP/1 it keeps
// them, for a connection that had died before anything was written.
//
// A POST without a body and without a key stays one that is not sent again.

// maySpeakHTTP2 reports whether the request may go over HTTP/2, by what the latest
// connection spoke.
func (t *transport) maySpeakHTTP2(req *http.Request) bool {
	return !t.http1.Load() && t.negotiates(req)
}

// negotiates reports whether a connection for req can be one of HTTP/2.
func (t *transport) negotiates(req *http.Request) bool {
	return req.URL.Scheme == "https" || resend.SharedInClear(t.next)
}

// learn notes what the connection of an attempt spoke, and that a response has come.
func (t *transport) learn(a *attempt, resp *http.Response) {
	if resp != nil {
		t.heard.Add(1)
	}
	if !t.negotiates(a.req) || a.guard.Conn() == nil {
		return
	}
	if http1 := !a.guard.HTTP2(); t.http1.Load() != http1 {
		t.http1.Store(http1)
	}
}
