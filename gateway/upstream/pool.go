package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/gateway/internal/direct"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// pool is the connections of one transport, from its making until it is closed. It
// is safe for concurrent use.
type pool struct {
	transport *http.Transport
	direct    direct.Transport               // over it
	material  *certfile.Material             // that its connections are made with
	fault     atomic.Pointer[mismatch.Error] // what a connection of net/http has found out last
	moving    time.Time                      // from when on requests move to another pool
	end       time.Time                      // from when on none gets a request; zero for never
}

func newPool(t *http.Transport) *pool {
	return &pool{transport: t, direct: direct.Transport{Next: t}}
}

// send sends a request once.
func (p *pool) send(r *http.Request) (*http.Response, error) {
	if len(r.Header["Upgrade"]) > 0 {
		r = withVersion(r)
	}
	known := p.fault.Load()
	resp, err := p.direct.RoundTrip(r)
	if err != nil {
		return nil, p.because(err, known)
	}
	return resp, nil
}

// because adds to an error what a connection has found out since known was loaded.
// What net/http says of a connection that both sides broke off depends on which of
// its goroutines was first.
func (p *pool) because(err error, known *mismatch.Error) error {
	found := p.fault.Load()
	if found == nil || found == known {
		return err
	}
	if _, said := errors.AsType[mismatch.Error](err); said {
		return err
	}
	return fmt.Errorf("%w: %w", *found, err)
}

// listen makes net/http's connections in clear listen to the first word of their server.
// Those to proxies are among them. The others are read by package direct, which listens
// itself.
func (p *pool) listen() {
	dial := p.transport.DialContext
	p.direct.Dial = dial
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

	first sync.Mutex // held while the first word is awaited and judged
	fault error      // what was found, under first
}

// SharedByRequests reports whether several requests are on the connection at a time.
func (c *clearConn) SharedByRequests() bool { return c.http2.Load() }

// SyscallConn implements [syscall.Conn]: it says how much is yet to be sent.
func (c *clearConn) SyscallConn() (syscall.RawConn, error) {
	if below, ok := c.Conn.(syscall.Conn); ok {
		return below.SyscallConn()
	}
	return nil, syscall.ENOTSUP
}

// CloseWrite closes one way of the connection, for what it was upgraded to.
func (c *clearConn) CloseWrite() error {
	if below, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return below.CloseWrite()
	}
	return http.ErrNotSupported
}

// Read implements [net.Conn].
func (c *clearConn) Read(p []byte) (int, error) {
	if c.heard.Load() {
		return c.Conn.Read(p)
	}
	c.first.Lock()
	defer c.first.Unlock()
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Load() {
		if c.judge(p[:n]); c.fault != nil {
			return 0, c.fault
		}
	}
	return n, err
}

// Write implements [net.Conn]. What the server said before it hung up is still there
// when a write fails, or with the reader, which has not judged it yet. A client of HTTP/2
// would not wait for either. One of HTTP/1 does, and it may be a response.
func (c *clearConn) Write(p []byte) (int, error) {
	if !c.wrote.Load() {
		c.http2.Store(bytes.HasPrefix(p, []byte(mismatch.Preface)))
		c.wrote.Store(true)
	}
	n, err := c.Conn.Write(p)
	if err != nil && c.http2.Load() && !c.heard.Load() {
		if fault := c.said(); fault != nil {
			return n, fault
		}
	}
	return n, err
}

// said returns what the server's first word finds, if one has come or comes at once.
func (c *clearConn) said() error {
	const wait = 50 * time.Millisecond
	_ = c.SetReadDeadline(time.Now().Add(wait)) // nothing is read any more after a failed write
	c.first.Lock()
	defer c.first.Unlock()
	if !c.heard.Load() {
		var first [16]byte
		if n, _ := c.Conn.Read(first[:]); n > 0 {
			c.judge(first[:n])
		}
	}
	return c.fault
}

// judge notes what the server wants that sent first.
func (c *clearConn) judge(first []byte) {
	if fault := mismatch.Of(first, c.http2.Load()); fault != "" {
		c.fault = fault
		c.found.Store(&fault)
	}
	c.heard.Store(true)
}
