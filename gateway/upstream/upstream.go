// Package upstream is how the gateway reaches one dependency: over which
// connections, to which of its addresses, and under which TLS settings. It sits
// below the retries and sends each attempt once.
package upstream

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/direct"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/resend"
)

// Config says how a dependency is reached. The zero value is ready to use.
type Config struct {
	// Connect bounds the making of a connection and, once more, its TLS
	// handshake. Zero means [httpretry.DefaultConnect].
	Connect time.Duration
}

// Upstream is an [http.RoundTripper] with the connections to one dependency. It is
// safe for concurrent use; make it with [New].
type Upstream struct {
	transport *http.Transport
	direct    direct.Transport // over it
	closed    atomic.Bool      // no connection is kept any more
}

var _ resend.Sender = (*Upstream)(nil)

// New returns an Upstream, or all faults of its configuration.
func New(c Config) (*Upstream, error) {
	t := newTransport(c)
	return &Upstream{transport: t, direct: direct.Transport{Next: t}}, nil
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
		ForceAttemptHTTP2:     true,
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
	resp, err := u.direct.RoundTrip(r)
	if err != nil {
		u.end()
		return nil, err
	}
	resp.Body = u.ending(resp.Body)
	return resp, nil
}

// Underlying makes it known that requests are sent by net/http's own rules.
func (u *Upstream) Underlying() *http.Transport { return u.transport }

// CloseIdleConnections closes the connections that no request uses.
func (u *Upstream) CloseIdleConnections() { u.direct.CloseIdleConnections() }

// Close closes the connections that no request uses, and each other one when its
// request is over: another Upstream has taken charge. Requests are still served.
func (u *Upstream) Close() {
	u.closed.Store(true)
	u.direct.CloseIdleConnections()
}

// end closes what a request leaves behind when no connection is kept any more.
func (u *Upstream) end() {
	if u.closed.Load() {
		u.direct.CloseIdleConnections()
	}
}

// ending returns a body whose end is the request's end. A connection that was
// upgraded is written to as well.
func (u *Upstream) ending(body io.ReadCloser) io.ReadCloser {
	b := &endingBody{ReadCloser: body, u: u}
	if w, ok := body.(io.Writer); ok {
		return &endingConn{b, w}
	}
	return b
}

// endingBody is the body of a request that is under way.
type endingBody struct {
	io.ReadCloser
	u *Upstream
}

// Close implements [io.Closer].
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.u.end()
	return err
}

// endingConn is that of an upgraded connection.
type endingConn struct {
	*endingBody
	io.Writer
}
