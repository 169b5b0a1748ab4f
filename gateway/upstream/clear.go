package upstream

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/internal/mismatch"
)

// listen makes the connections in clear listen to the first word of their server.
// Those to proxies are among them.
func (p *pool) listen() {
	dial := p.transport.DialContext
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &clearConn{Conn: conn, found: &p.fault}, nil
	}
}

// clearConn is a connection in clear. It recognizes a server that speaks another
// protocol than the client by what it sends first.
type clearConn struct {
	net.Conn
	found *atomic.Pointer[mismatch.Error]

	wrote, heard, http2 atomic.Bool
}

// SharedByRequests reports whether several requests are on the connection at a time.
func (c *clearConn) SharedByRequests() bool { return c.http2.Load() }

// SyscallConn implements [syscall.Conn], for those who ask how much is yet to be sent.
func (c *clearConn) SyscallConn() (syscall.RawConn, error) {
	if below, ok := c.Conn.(syscall.Conn); ok {
		return below.SyscallConn()
	}
	return nil, syscall.ENOTSUP
}

// Read implements [net.Conn].
func (c *clearConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Load() {
		if fault := c.judge(p[:n]); fault != nil {
			return 0, fault
		}
	}
	return n, err
}

// Write implements [net.Conn]. What the server said before it hung up is still there
// when a write fails. A client of HTTP/2 would not read it any more: it reads after it
// has written its preface. One of HTTP/1 is reading already, and it may be a response.
func (c *clearConn) Write(p []byte) (int, error) {
	if !c.wrote.Load() {
		c.http2.Store(bytes.HasPrefix(p, []byte(mismatch.Preface)))
		c.wrote.Store(true)
	}
	n, err := c.Conn.Write(p)
	if err != nil && c.http2.Load() && !c.heard.Load() {
		const wait = 50 * time.Millisecond
		var first [16]byte
		_ = c.SetReadDeadline(time.Now().Add(wait))
		if m, _ := c.Conn.Read(first[:]); m > 0 {
			if fault := c.judge(first[:m]); fault != nil {
				return n, fault
			}
		}
	}
	return n, err
}

// judge notes what the server wants who sent first, and returns it, or nil.
func (c *clearConn) judge(first []byte) error {
	c.heard.Store(true)
	fault := mismatch.Of(first, c.http2.Load())
	if fault == "" {
		return nil
	}
	c.found.Store(&fault)
	return fault
}
