// Package resend stops net/http from sending a request again by itself.
//
// It does so when a pooled connection dies under a request, and over HTTP/2 on
// GOAWAY and REFUSED_STREAM, with no bound that a policy knows of: nine sends of
// a GET were measured on eight stale connections. A [Guard] lets the first send
// through and stops the second: asking for a connection after the headers were
// written ends the send. The caller of RoundTrip then decides, as after any
// other failure.
package resend

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// Err is what a stopped re-send looks like from above.
var Err = errors.New("the connection failed after the request was sent")

// Guard watches one send. It is the context to send under, with a trace of its
// own: httptrace.WithClientTrace would cost an allocation more for each request.
// The zero value is ready for [Guard.Watch]; a Guard serves one send.
type Guard struct {
	context.Context

	cancel  func()
	trace   httptrace.ClientTrace
	callers *httptrace.ClientTrace // that of the caller's context, or nil

	sent    atomic.Bool // the headers are on the wire
	stopped atomic.Bool // net/http was about to send them again
}

// Watch returns the context to send under. cancel must end ctx; it is called at
// the second send, more than once if need be. The trace that ctx has goes on
// seeing everything.
func (g *Guard) Watch(ctx context.Context, cancel func()) context.Context {
	g.Context, g.cancel = ctx, cancel
	if traceKey == nil {
		g.setHooks()
		return httptrace.WithClientTrace(ctx, &g.trace)
	}
	// WithClientTrace would put the two traces together by reflection, for each
	// request.
	if g.callers = httptrace.ContextClientTrace(ctx); g.callers != nil {
		g.trace = *g.callers
	}
	g.setHooks()
	return g
}

// Sent reports whether the request may have reached the server.
func (g *Guard) Sent() bool { return g.sent.Load() }

// Stopped reports whether a second send was stopped.
func (g *Guard) Stopped() bool { return g.stopped.Load() }

// Value makes the guard the context of its own trace.
func (g *Guard) Value(key any) any {
	if key == traceKey {
		return &g.trace
	}
	return g.Context.Value(key)
}

// traceKey is the key under which httptrace looks for a trace. It is not
// exported, but it can be seen being asked for; nil if it ever cannot.
var traceKey = func() any {
	var p keyProbe
	httptrace.ContextClientTrace(&p)
	return p.key
}()

// keyProbe is a context that remembers the key it was asked for.
type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}

func (g *Guard) setHooks() {
	g.trace.WroteHeaders = g.wroteHeaders
	g.trace.GetConn = g.getConn
	g.trace.GotConn = g.gotConn
}

func (g *Guard) wroteHeaders() {
	g.sent.Store(true)
	if c := g.callers; c != nil && c.WroteHeaders != nil {
		c.WroteHeaders()
	}
}

func (g *Guard) getConn(hostPort string) {
	if g.sent.Load() {
		g.stop()
	}
	if c := g.callers; c != nil && c.GetConn != nil {
		c.GetConn(hostPort)
	}
}

// gotConn is the second line: net/http may win the race between the canceled
// context and an idle connection, and would write to it. An HTTP/2 connection
// belongs to others as well and looks at the context before it writes.
func (g *Guard) gotConn(info httptrace.GotConnInfo) {
	if g.sent.Load() {
		g.stop()
		if info.Conn != nil && !speaksHTTP2(info.Conn) {
			_ = info.Conn.Close()
		}
	}
	if c := g.callers; c != nil && c.GotConn != nil {
		c.GotConn(info)
	}
}

func (g *Guard) stop() {
	g.stopped.Store(true)
	g.cancel()
}

func speaksHTTP2(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
