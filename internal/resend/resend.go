// Package resend stops net/http from sending a request again by itself.
//
// It does so when a pooled connection dies under a request, and over HTTP/2 on
// GOAWAY and REFUSED_STREAM, with no bound that a policy knows of: nine sends of
// a GET were measured on eight stale connections. A [Guard] lets the first send
// through and stops the second: asking for a connection after the headers were
// written ends the send. The caller of RoundTrip then decides, as after any
// other failure.
//
// One re-send is let through: that of a request of which not a byte was written. When
// nothing stands between the guard and net/http's own transport, that is known by its
// rules: over HTTP/1 it sends a request again that is neither idempotent by its method
// nor has a key only when none of it was written. The server sees one request.
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
	"time"

	"github.com/forbear-go/forbear/internal/window"
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

	// Fresh, where it is set, is since when an idle connection of HTTP/1 must have been used:
	// an older one is closed, and net/http takes the next. See [Guard.Reused].
	Fresh time.Duration

	// unwritten says that over HTTP/1 the request is sent again only when none of
	// it was written.
	unwritten bool
	shared    bool        // connections in clear speak HTTP/2
	http2     atomic.Bool // the latest connection does
	sent      atomic.Bool // the headers are on the wire, or in the buffer before it
	stopped   atomic.Bool // the headers were about to be sent again
	stale     atomic.Bool // the latest connection was closed for its age

	mu     sync.Mutex
	conn   net.Conn      // the latest
	reused bool          // it had served other requests
	since  time.Duration // from window.Epoch: when the send got it, if reused
}

// Watch returns the context to send under. cancel must end ctx; it is called at
// the second send, more than once if need be. The trace that ctx has goes on
// seeing everything.
func (g *Guard) Watch(ctx context.Context, cancel func()) context.Context {
	g.Context, g.cancel = ctx, cancel
	if TraceKey == nil {
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

// Sending says what will be sent, as it will be, and through what: without that no
// re-send is let through.
func (g *Guard) Sending(req *http.Request, next http.RoundTripper) {
	g.shared = SharedInClear(next)
	g.unwritten = TransportOf(next) != nil && !g.shared && !Repeatable(req)
}

// SharedInClear reports whether next may speak HTTP/2 in clear.
func SharedInClear(next http.RoundTripper) bool {
	t := TransportOf(next)
	return t != nil && t.Protocols != nil && t.Protocols.UnencryptedHTTP2() && !t.Protocols.HTTP1()
}

// TransportOf returns the transport of net/http's by whose rules next sends, or nil.
func TransportOf(next http.RoundTripper) *http.Transport {
	switch next := next.(type) {
	case *http.Transport:
		return next
	case Sender:
		return next.Underlying()
	}
	return nil
}

// Sender is a RoundTripper that sends each request once by a transport of net/http's,
// and adds nothing that could send it again.
type Sender interface {
	http.RoundTripper
	// Underlying returns that transport or one like it, or nil after all.
	Underlying() *http.Transport
}

// Conn returns the connection of the send, or nil.
func (g *Guard) Conn() net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn
}

// HTTP2 reports whether the latest connection of the send is one of HTTP/2.
func (g *Guard) HTTP2() bool { return g.http2.Load() }

// Repeatable reports whether net/http sends req again after it was written, should
// its connection die: it takes these methods and these keys for safe, whatever a
// policy says of them. A key that is there and has no value is one, and is not sent.
func Repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, key := req.Header["Idempotency-Key"]
	_, other := req.Header["X-Idempotency-Key"]
	return key || other
}

// Value makes the guard the context of its own trace.
func (g *Guard) Value(key any) any {
	if key == TraceKey {
		return &g.trace
	}
	return g.Context.Value(key)
}

// TraceKey is the key under which httptrace looks for a trace in a context. It is not
// exported there, but it can be seen being asked for; nil if it ever cannot.
var TraceKey = func() any {
	var p keyProbe
	httptrace.ContextClientTrace(&p)
	return p.key
}()

// Untraced returns ctx without its trace, for a request of another call than its own.
func Untraced(ctx context.Context) context.Context {
	if TraceKey == nil || httptrace.ContextClientTrace(ctx) == nil {
		return ctx
	}
	return untraced{ctx}
}

type untraced struct{ context.Context }

// Value implements [context.Context].
func (u untraced) Value(key any) any {
	if key == TraceKey {
		return nil
	}
	return u.Context.Value(key)
}

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
	switch {
	case g.stale.Swap(false): // nothing went over it
		g.sent.Store(false)
	case !g.sent.Load():
	case g.unwritten && !g.http2.Load():
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
	http2 := info.Conn != nil && speaksHTTP2(info.Conn, g.shared)
	g.http2.Store(http2)
	g.mu.Lock()
	if g.conn, g.reused = info.Conn, info.Reused; g.reused {
		g.since = time.Since(window.Epoch())
	}
	old := info.WasIdle && info.Conn != nil && !http2 && g.Fresh != 0 && g.since-info.IdleTime < g.Fresh
	g.mu.Unlock()
	switch {
	case g.sent.Load():
		g.stop()
		if info.Conn != nil && !http2 && !g.shared {
			_ = info.Conn.Close()
		}
	case old:
		g.stale.Store(true)
		_ = info.Conn.Close()
	}
	if c := g.callers; c != nil && c.GotConn != nil {
		c.GotConn(info)
	}
}

func (g *Guard) stop() {
	g.stopped.Store(true)
	g.cancel()
}

// speaksHTTP2 reports whether other requests may be on the connection. In clear it may
// say so itself; HTTP/2 is spoken there by those alone who speak no HTTP/1.
func speaksHTTP2(c net.Conn, inClear bool) bool {
	if s, ok := c.(interface{ SharedByRequests() bool }); ok {
		return s.SharedByRequests()
	}
	if t, ok := c.(*tls.Conn); ok {
		return t.ConnectionState().NegotiatedProtocol == "h2"
	}
	return inClear
}
