// Package resend stops net/http from sending a request again by itself.
//
// It does so when a pooled connection dies under a request, and over HTTP/2 on
// GOAWAY and REFUSED_STREAM, with no bound that a policy knows of: nine sends of
// a GET were measured on eight stale connections. A [Guard] lets the first send
// through and stops the second: asking for a connection after the headers were
// written ends the send. The caller of RoundTrip then decides, as after any
// other failure.
//
// One re-send is let through: that of a request of which not a byte has left the
// process. For a method that is not idempotent and has no key net/http repeats
// nothing else over HTTP/1, so that it is known by that: by a connection asked for
// within one RoundTrip, since a layer in between may begin another one and knows no
// such rule. The server sees one request.
package resend

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// Err is what a stopped re-send looks like from above.
var Err = errors.New("the connection failed under the request")

// Guard watches one send. It is the context to send under, with a trace of its
// own: httptrace.WithClientTrace would cost an allocation more for each request.
// The zero value is ready for [Guard.Watch]; a Guard serves one send.
type Guard struct {
	context.Context

	cancel  func()
	trace   httptrace.ClientTrace
	callers *httptrace.ClientTrace // that of the caller's context, or nil

	// unwritten says that net/http sends the request again only when it was not
	// written, or over HTTP/2 not processed.
	unwritten bool
	http2     atomic.Bool // the latest connection, or any may be
	sent      atomic.Bool // the headers are on the wire, or in the buffer before it
	anew      atomic.Bool // since then a RoundTrip has begun
	stopped   atomic.Bool // the headers were about to be sent again

	mu   sync.Mutex
	conn net.Conn // the latest
}

// Watch returns the context to send req under. cancel must end ctx; it is called at
// the second send, more than once if need be. The trace that ctx has goes on
// seeing everything.
func (g *Guard) Watch(ctx context.Context, req *http.Request, cancel func()) context.Context {
	g.Context, g.cancel, g.unwritten = ctx, cancel, !repeatable(req)
	if traceKey == nil {
		g.unwritten = false // what begins anew would not be seen
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

// Unsent reports whether the send that was stopped would have been the first that
// the server processes.
func (g *Guard) Unsent() bool { return g.stopped.Load() && g.unwritten }

// Conn returns the connection of the send, or nil.
func (g *Guard) Conn() net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn
}

// repeatable reports whether net/http sends req again after it was written, should
// its connection die: it takes these methods and these keys for safe, whatever a
// policy says of them.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return len(req.Header["Idempotency-Key"]) > 0 || len(req.Header["X-Idempotency-Key"]) > 0
}

// Value makes the guard the context of its own trace. Each RoundTrip of net/http
// begins by looking for it.
func (g *Guard) Value(key any) any {
	if key == traceKey {
		g.anew.Store(true)
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
	g.anew.Store(false)
	g.sent.Store(true)
	if c := g.callers; c != nil && c.WroteHeaders != nil {
		c.WroteHeaders()
	}
}

func (g *Guard) getConn(hostPort string) {
	switch {
	case !g.sent.Load():
	case g.unwritten && !g.anew.Load() && !g.http2.Load():
		g.sent.Store(false)
	default:
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
	http2 := info.Conn != nil && speaksHTTP2(info.Conn)
	g.http2.Store(http2)
	g.mu.Lock()
	g.conn = info.Conn
	g.mu.Unlock()
	if g.sent.Load() {
		g.stop()
		if info.Conn != nil && !http2 {
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
