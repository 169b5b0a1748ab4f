package clientcert

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// aheadConn is the connection below TLS. It can look at what comes next.
//
// In TLS 1.3 a client has finished its handshake before the server has judged the
// client's certificate, so that the refusal comes when the request is already on its
// way. The server closes the connection behind it, and then it is a matter of luck
// whether net/http reports the refusal or a connection that broke, which would be
// retried: of 100 requests over HTTP/2, 65 were. A server that accepts the certificate
// sends session tickets, or its SETTINGS. So the dialer waits for either: one round
// trip for each connection to a server that asks for certificates, as TLS 1.2 has it.
type aheadConn struct {
	net.Conn
	next []byte // read ahead of TLS
}

// Read implements [net.Conn].
func (c *aheadConn) Read(p []byte) (int, error) {
	if len(c.next) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.next)
	c.next = c.next[n:]
	return n, nil
}

// SyscallConn implements [syscall.Conn], for those who ask how much is yet to be sent.
func (c *aheadConn) SyscallConn() (syscall.RawConn, error) {
	if below, ok := c.Conn.(syscall.Conn); ok {
		return below.SyscallConn()
	}
	return nil, syscall.ENOTSUP
}

// verdict waits for the server's first bytes after the handshake, which took so long,
// and returns the alert by which it refuses the certificate, or nil. A server that
// sends nothing of its own gets the time of two more handshakes, and a tenth of a second at
// least: a busy server is no faster on a near network.
func (c *aheadConn) verdict(conn *tls.Conn, took time.Duration) error {
	const (
		least, most = 100 * time.Millisecond, time.Second
		// header and encrypted alert: two bytes, their type, and the tag of each
		// cipher of TLS 1.3 (RFC 8446 section 5.2)
		header, alert = 5, 2 + 1 + 16
	)
	if err := c.SetReadDeadline(time.Now().Add(min(max(2*took, least), most))); err != nil {
		return nil
	}
	defer c.SetReadDeadline(time.Time{})
	buf := make([]byte, 4<<10)
	n := 0
	for n < header {
		m, err := c.Conn.Read(buf[n:])
		n += m
		if err != nil {
			break
		}
	}
	c.next = buf[:n]
	if n < header || buf[0] != 23 || int(buf[3])<<8|int(buf[4]) != alert {
		return nil
	}
	// HTTP has no record as short as an alert before a request, so that none is
	// taken from the response.
	_, err := conn.Read(make([]byte, 1))
	return err
}
