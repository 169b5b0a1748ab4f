package smuggling

import (
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
)

// serve runs the server of a gateway on a listener, as `forbear serve` does.
// This is the one place that knows how such a server is made.
func serve(l net.Listener, g *gateway.Gateway) *http.Server {
	srv := gateway.NewServer(g)
	// A refusal that comes because time is up would hide that the request was not
	// understood.
	srv.ReadHeaderTimeout = time.Hour
	srv.ErrorLog = log.New(io.Discard, "", 0)
	guarded := gateway.Listener(l, nil, slog.New(slog.DiscardHandler))
	go func() { _ = srv.Serve(guarded) }()
	return srv
}

// policy retries nothing: a probe is about one request.
var policy = forbear.Policy{Disabled: true, Breaker: breaker.Policy{Disabled: true}}

// newGateway puts a gateway before a site: /up under the base path /base, and the
// host api.test as it is. step bounds what a read of it gives; 0 is no bound. It returns
// its address, and what ends it.
func newGateway(t testing.TB, s *site, step int) (address string, end func()) {
	t.Helper()
	address = s.listener.Addr().String()
	r, err := forbear.New("upstream", policy, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(upstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Routes: []gateway.Route{
			{Prefix: "/up", Target: &url.URL{Scheme: "http", Host: address, Path: "/base"}, Retryer: r, Transport: up},
			{Host: "api.test", Target: &url.URL{Scheme: "http", Host: address}, Retryer: r, Transport: up},
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if step > 0 {
		l = slow{l, step}
	}
	srv := serve(l, g)
	return addr, func() {
		_ = srv.Close()
		up.Close()
	}
}

// slow is a listener whose connections give no more than step bytes for each read. By
// one, a parser finds every boundary that a network can put into a message.
type slow struct {
	net.Listener
	step int
}

func (l slow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowConn{c, l.step}, nil
}

type slowConn struct {
	net.Conn
	step int
}

func (c slowConn) Read(p []byte) (int, error) { return c.Conn.Read(p[:min(c.step, len(p))]) }

// CloseWrite lets the server close as it closes a plain connection.
func (c slowConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
