package direct

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"time"
)

// reaches reports whether connections to a URL are made here. Over TLS that is so where
// HTTP/2 is off: otherwise the handshake says which of the two is spoken, and
// connections of HTTP/2 are net/http's.
func (t *Transport) reaches(u *url.URL) bool {
	switch p := t.Next.Protocols; u.Scheme {
	case "http":
		return p == nil || p.HTTP1()
	case "https":
		return p != nil && p.HTTP1() && !p.HTTP2() && t.Next.DialTLSContext != nil
	}
	return false
}

// place is where a request goes.
type place struct {
	secure  bool
	address string
}

// placeOf returns the place of a URL, whose port may be missing or empty.
func placeOf(u *url.URL) place {
	p := place{secure: u.Scheme == "https", address: u.Host}
	if u.Port() == "" {
		port := "80"
		if p.secure {
			port = "443"
		}
		p.address = net.JoinHostPort(u.Hostname(), port)
	}
	return p
}

// below returns the connection that carries c.
func below(c net.Conn) net.Conn {
	if s, ok := c.(*tls.Conn); ok {
		return s.NetConn()
	}
	return c
}

// alive reports whether an idle connection can be used: its server has neither closed it
// nor sent anything, which would be the response to no request.
func (c *conn) alive() bool {
	s, ok := c.Conn.(*tls.Conn)
	if !ok {
		return c.line.silent()
	}
	// What TLS has read ahead is there at once. What comes from the system may be a
	// ticket for another session, which is no matter.
	const ticket = time.Millisecond
	at := time.Unix(1, 0)
	if !c.line.silent() {
		at = time.Now().Add(ticket)
	}
	_ = s.SetReadDeadline(at)
	_, err := s.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && s.SetReadDeadline(time.Time{}) == nil
}
