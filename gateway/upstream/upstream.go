// Package upstream is how the gateway reaches one dependency: over which
// connections, to which of its addresses, and under which TLS settings. It sits
// below the retries and sends each attempt once.
package upstream

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/resend"
)

// Config says how a dependency is reached. The zero value is ready to use.
type Config struct {
	// Connect bounds the making of a connection and, once more, its TLS
	// handshake. Zero means [httpretry.DefaultConnect].
	Connect time.Duration
	// TLS is for https targets.
	TLS TLS
	// HTTP2 says when HTTP/2 is spoken.
	HTTP2 HTTP2
	// Logger gets what becomes of certificate files that change. Nil means
	// slog.Default().
	Logger *slog.Logger
}

// Upstream is an [http.RoundTripper] with the connections to one dependency. It is
// safe for concurrent use; make it with [New].
type Upstream struct {
	config Config
	files  *certfile.Source // nil where no file is named
	now    atomic.Pointer[generation]

	mu     sync.Mutex // guards the change of now, and closed
	closed bool       // no connection is kept any more
}

var _ resend.Sender = (*Upstream)(nil)

// New returns an Upstream, or all faults of its configuration.
func New(c Config) (*Upstream, error) {
	u := &Upstream{config: c}
	if err := u.open(); err != nil {
		return nil, err
	}
	return u, nil
}

// newTransport returns a transport like [http.DefaultTransport], but with enough idle
// connections for a gateway and with bodies passed on as they are encoded.
func newTransport(c Config) *http.Transport {
	connect := cmp.Or(c.Connect, httpretry.DefaultConnect)
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   connect,
		Protocols:             c.HTTP2.protocols(),
		MaxIdleConnsPerHost:   512,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		// The caller has agreed on an encoding with the dependency, and a
		// transport that decompresses by itself changes bytes and lengths.
		DisableCompression: true,
	}
}

// RoundTrip implements [http.RoundTripper].
func (u *Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	g := u.generation()
	known := g.fault.Load()
	resp, err := g.transport.RoundTrip(withVersion(r))
	if err != nil {
		g.end()
		return nil, g.because(err, known)
	}
	resp.Body = g.ending(resp.Body)
	return resp, nil
}

// Underlying makes it known that requests are sent by net/http's own rules.
func (u *Upstream) Underlying() *http.Transport { return u.now.Load().transport }

// CloseIdleConnections closes the connections that no request uses.
func (u *Upstream) CloseIdleConnections() { u.now.Load().transport.CloseIdleConnections() }

// Close closes the connections that no request uses, and each other one when its
// request is over: another Upstream has taken charge. Requests are still served.
func (u *Upstream) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	u.now.Load().retire()
}
