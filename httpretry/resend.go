package httpretry

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
)

// net/http sends a request again by itself when a pooled connection dies under
// it, and over HTTP/2 on GOAWAY and REFUSED_STREAM, with no bound that a policy
// knows of. The watch below lets the first send through and stops the second:
// asking for a connection after the headers were written cancels the attempt.
// The caller of RoundTrip then decides, as after any other failure.

// errResend is what a stopped re-send looks like from above.
var errResend = errors.New("the connection failed after the request was sent")

// watch sets the attempt's trace, if it is wanted, and returns the context to
// send under.
func (a *attempt) watch(wanted bool) context.Context {
	if !wanted {
		return a.Context
	}
	if traceKey == nil {
		a.setHooks()
		return httptrace.WithClientTrace(a.Context, &a.trace)
	}
	// The caller's own trace goes on seeing everything. WithClientTrace would
	// put the two together by reflection, for each request.
	if a.callers = httptrace.ContextClientTrace(a.parent); a.callers != nil {
		a.trace = *a.callers
	}
	a.setHooks()
	a.traced = true
	return a
}

func (a *attempt) setHooks() {
	a.trace.WroteHeaders = a.wroteHeaders
	a.trace.GetConn = a.getConn
	a.trace.GotConn = a.gotConn
}

// Value makes the attempt the context of its own trace, where WithClientTrace
// would cost one more allocation for each request.
func (a *attempt) Value(key any) any {
	if a.traced && key == traceKey {
		return &a.trace
	}
	return a.Context.Value(key)
}

// traceKey is the key under which httptrace looks for a trace. It is not
// exported, but it can be seen being asked for.
var traceKey = func() any {
	var p keyProbe
	httptrace.ContextClientTrace(&p)
	return p.key
}()

type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}

func (a *attempt) wroteHeaders() {
	a.sent.Store(true)
	if c := a.callers; c != nil && c.WroteHeaders != nil {
		c.WroteHeaders()
	}
}

func (a *attempt) getConn(hostPort string) {
	if a.sent.Load() {
		a.stopResend()
	}
	if c := a.callers; c != nil && c.GetConn != nil {
		c.GetConn(hostPort)
	}
}

// gotConn is the second line: net/http may win the race between the canceled
// context and an idle connection, and would write to it. An HTTP/2 connection
// belongs to others as well and looks at the context before it writes.
func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	if a.sent.Load() {
		a.stopResend()
		if info.Conn != nil && !speaksHTTP2(info.Conn) {
			_ = info.Conn.Close()
		}
	}
	if c := a.callers; c != nil && c.GotConn != nil {
		c.GotConn(info)
	}
}

func (a *attempt) stopResend() {
	a.resend.Store(true)
	a.cancel()
}

func speaksHTTP2(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
