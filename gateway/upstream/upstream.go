// Package upstream is how the gateway reaches one dependency: over which
// connections, to which of its addresses, and under which TLS settings. It sits
// below the retries and sends each attempt once.
//
// Experimental: what this package exports may change in any version.
package upstream

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/below"
	"github.com/forbear-go/forbear/internal/mismatch"
	"github.com/forbear-go/forbear/internal/resend"
)

// Config says how a dependency is reached. The zero value is ready to use.
type Config struct {
	// Connect bounds the making of a connection and, once more, its TLS
	// handshake. Zero means [httpretry.DefaultConnect].
	Connect time.Duration
	// MaxAge bounds how old a connection may be that gets a new request; those under
	// way finish. Zero means [DefaultMaxAge], a negative one sets no bound.
	MaxAge time.Duration
	// Endpoints are addresses (host:port) that are connected to in turns, in place of
	// the host of the request's URL. That host stays what the Host header and the TLS
	// handshake name. No proxy of the environment is used then, and with DNS neither.
	Endpoints []string
	// DNS is a host:port that takes the place of Endpoints: all addresses of the name
	// are, and the name is looked up again while requests come.
	DNS string
	// Resolver looks the name up. Nil means [net.DefaultResolver].
	Resolver Resolver
	// TLS is for https targets.
	TLS TLS
	// HTTP2 says when HTTP/2 is spoken.
	HTTP2 HTTP2
	// Logger gets a line when an address is left out and when it is back, and what
	// happens to certificate files that change. Nil means slog.Default().
	Logger *slog.Logger

	files *certfile.Source // of TLS; nil where no file is named
}

// Upstream is an [http.RoundTripper] with the connections to one dependency. It is
// safe for concurrent use; make it with [New].
type Upstream struct {
	config Config
	like   *http.Transport // all transports are like this one
	only   *aging          // where the connections go as the URL says, or to one address; else nil
	lookup *lookup         // nil without a name

	mu      sync.Mutex
	all     []*endpoint
	in      []*endpoint // those of all that are not left out
	turn    uint64      // of first attempts
	retries uint64      // of retries: in one count with the others they would take the turns of an address
	closed  bool
}

var _ resend.Sender = (*Upstream)(nil)

// New returns an Upstream, or all faults of its configuration.
func New(c Config) (*Upstream, error) {
	if err := c.checkEndpoints(); err != nil {
		return nil, err
	}
	if err := c.openFiles(); err != nil {
		return nil, err
	}
	c.MaxAge = cmp.Or(c.MaxAge, DefaultMaxAge)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	switch {
	case len(c.Endpoints) > 1, c.DNS != "":
		return newBalanced(c), nil
	case len(c.Endpoints) == 1:
		return newSingle(c, c.to(c.Endpoints[0])), nil
	default:
		return newSingle(c, c.aging(func() *http.Transport { return newTransport(c) })), nil
	}
}

// newSingle returns an Upstream all of whose connections are those of a.
func newSingle(c Config, a *aging) *Upstream {
	return &Upstream{config: c, like: newTransport(c), only: a, all: []*endpoint{{conns: a}}}
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
		HTTP2:                 below.Pinged(nil),
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
	if u.config.HTTP2 == HTTP2Only && r.Header.Get("Upgrade") != "" {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, mismatch.Upgrade
	}
	if u.only != nil {
		return u.only.pick().send(r)
	}
	return u.balance(r)
}

// Underlying makes it known that requests are sent by net/http's own rules.
func (u *Upstream) Underlying() *http.Transport { return u.like }

// CloseIdleConnections closes the connections that no request uses.
func (u *Upstream) CloseIdleConnections() { u.each((*aging).closeIdle) }

// Close closes the connections that no request uses, and each other one when its
// request is over: another Upstream has taken charge. Requests are still served.
func (u *Upstream) Close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.each((*aging).close)
}

// each does something with the connections to every address.
func (u *Upstream) each(do func(*aging)) {
	u.mu.Lock()
	all := u.all
	u.mu.Unlock()
	for _, e := range all {
		do(e.conns)
	}
}
