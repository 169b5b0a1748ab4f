package httpretry

import (
	"net/http"

	"github.com/forbear-go/forbear/internal/resend"
)

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
