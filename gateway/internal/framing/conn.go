// Package framing refuses requests that say the length of their body in two ways
// (RFC 9112 section 6.3): by Content-Length and by Transfer-Encoding, or by
// Transfer-Encoding under HTTP/1.0, which does not know it. Two servers in a row that
// choose differently take a part of the body for another request. net/http chooses for
// itself and drops the other header, so that a handler cannot see it: the bytes of the
// connection are looked at before.
package framing

import (
	"crypto/tls"
	"net"
	"sync/atomic"
)

// Listener returns l with all its connections guarded. They are in clear.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}

// Conn is a connection of a server whose requests are watched.
type Conn struct {
	net.Conn
	scanner scanner
	off     atomic.Bool
}

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.off.Load() {
		c.scanner.scan(p[:n])
	}
	return n, err
}

// CloseWrite closes one way of the connection.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return net.ErrClosed
}

// Unwatch ends the watch over a connection that a server gave away: it has changed its
// protocol.
func Unwatch(c net.Conn) {
	switch c := c.(type) {
	case *Conn:
		c.off.Store(true)
	case secured:
		c.off.Store(true)
	}
}

// secured is a Conn over TLS. The server asks it for the state of the handshake.
type secured struct{ *Conn }

// ConnectionState returns the state of TLS.
func (c secured) ConnectionState() tls.ConnectionState {
	return c.Conn.Conn.(*tls.Conn).ConnectionState()
}
