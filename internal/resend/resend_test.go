package resend_test

import (
	"context"
	"net"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/forbear-go/forbear/internal/resend"
)

// closing is a connection that remembers that it was closed.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// The first send goes out, with every hook of the caller's trace; the second is
// ended when it asks for a connection, and the connection it got is closed.
func TestGuard(t *testing.T) {
	var asked, got, wrote int
	parent := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { asked++ },
		GotConn:      func(httptrace.GotConnInfo) { got++ },
		WroteHeaders: func() { wrote++ },
	})
	ctx, cancel := context.WithCancelCause(parent)
	var g resend.Guard
	trace := httptrace.ContextClientTrace(g.Watch(ctx, httptest.NewRequest("GET", "http://a/", nil), func() { cancel(resend.Err) }))

	first, second := &closing{}, &closing{}
	trace.GetConn("a:80")
	trace.GotConn(httptrace.GotConnInfo{Conn: first})
	if g.Sent() || g.Stopped() || ctx.Err() != nil || first.closed {
		t.Fatalf("before a header is written: sent %v, stopped %v, closed %v, %v", g.Sent(), g.Stopped(), first.closed, ctx.Err())
	}
	trace.WroteHeaders()
	if !g.Sent() || g.Stopped() || ctx.Err() != nil {
		t.Errorf("after the first send: sent %v, stopped %v, %v", g.Sent(), g.Stopped(), ctx.Err())
	}
	trace.GetConn("a:80")
	if !g.Stopped() || context.Cause(ctx) != resend.Err {
		t.Errorf("at the second send: stopped %v, %v", g.Stopped(), context.Cause(ctx))
	}
	trace.GotConn(httptrace.GotConnInfo{Conn: second})
	if !second.closed {
		t.Error("the connection for the second send was left open")
	}
	if asked != 2 || got != 2 || wrote != 1 {
		t.Errorf("the caller's trace saw %d, %d and %d; want 2, 2 and 1", asked, got, wrote)
	}
}
