// Package framing refuses requests that two servers in a row could read in two ways,
// and so take a part of one for another request:
//
//   - those that say the length of their body twice (RFC 9112 section 6.3), by
//     Content-Length and by Transfer-Encoding, or by Transfer-Encoding under HTTP/1.0,
//     which does not know it
//   - those with lines that end in a bare line feed (section 2.2), or that go on in the
//     next line (section 5.2)
//
// net/http chooses for itself and drops the rest, so that a handler cannot see it: the
// bytes of the connection are looked at before.
package framing

import (
	"crypto/tls"
	"io"
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

// Read implements [net.Conn]. What follows bytes that are refused is not waited for.
func (c *Conn) Read(p []byte) (int, error) {
	if c.scanner.state == lost && !c.off.Load() {
		if c.scanner.spoilt > maxSpoilt {
			return 0, io.EOF
		}
		c.scanner.spoil(p)
		return len(p), nil
	}
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
