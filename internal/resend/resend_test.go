package resend_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
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
	trace := httptrace.ContextClientTrace(g.Watch(ctx, func() { cancel(resend.Err) }))

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

// What net/http's own transport repeats over HTTP/1 although it is not idempotent was
// not written, and may go out. What another transport repeats, and what goes over
// HTTP/2, is stopped.
func TestGuardLetsTheUnwrittenGo(t *testing.T) {
	clear := &http.Transport{Protocols: new(http.Protocols)}
	clear.Protocols.SetUnencryptedHTTP2(true)
	var wrapped http.RoundTripper = struct{ http.RoundTripper }{&http.Transport{}}
	plain := &http.Transport{}
	for _, tc := range []struct {
		name, method string
		key          []string
		next         http.RoundTripper
		http2        bool
		stopped      bool
		closed       bool // the connection that it got all the same
	}{
		{"POST", "POST", nil, plain, false, false, false},
		{"PUT", "PUT", nil, plain, false, false, false},
		{"GET", "GET", nil, plain, false, true, true},
		{"POST with a key", "POST", []string{"k"}, plain, false, true, true},
		{"POST that is said to be idempotent", "POST", []string{}, plain, false, true, true},
		{"POST through a transport of others", "POST", nil, wrapped, false, true, true},
		{"POST through a sender of one transport", "POST", nil, sender{plain}, false, false, false},
		{"POST over HTTP/2", "POST", nil, plain, true, true, false},
		{"POST over HTTP/2 in clear, perhaps", "POST", nil, clear, false, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req := httptest.NewRequest(tc.method, "http://a/", nil)
			if tc.key != nil {
				req.Header["Idempotency-Key"] = tc.key
			}
			var g resend.Guard
			trace := httptrace.ContextClientTrace(g.Watch(ctx, cancel))
			g.Sending(req, tc.next)
			pooled := &closing{}
			var conn net.Conn = pooled
			if tc.http2 {
				conn = speakingHTTP2(t)
			}
			for range 2 {
				trace.GetConn("a:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: conn})
				if !g.Stopped() {
					trace.WroteHeaders()
				}
			}
			if g.Stopped() != tc.stopped || (ctx.Err() != nil) != tc.stopped || !g.Sent() || pooled.closed != tc.closed {
				t.Errorf("stopped %v, sent %v, closed %v, %v", g.Stopped(), g.Sent(), pooled.closed, ctx.Err())
			}
			if g.Conn() != conn {
				t.Error("the guard does not know the connection")
			}
		})
	}
}

// sender sends by a transport of net/http's, and says so.
type sender struct{ *http.Transport }

func (s sender) Underlying() *http.Transport { return s.Transport }

// speakingHTTP2 returns a connection that has agreed on HTTP/2.
func speakingHTTP2(t *testing.T) net.Conn {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
