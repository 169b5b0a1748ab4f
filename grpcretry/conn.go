package grpcretry

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// conn is a connection that can be taken out of use. gRPC keeps a connection for as
// long as it is open, and no call, option or interceptor can make it leave one. But it
// obeys its server, and a server takes a connection out of use with GOAWAY (RFC 9113
// section 6.8): calls under way go on to their end, new ones get another connection. So
// a connection that has gone silent is read as if its server had said so. To close it
// instead would end what others do on it, where the server is only slow.
type conn struct {
	net.Conn
	all    *conns
	heard  atomic.Int64  // when the latest byte came, since the windows' epoch
	framed atomic.Bool   // it began with HTTP/2, in clear as far as can be seen from here
	served atomic.Bool   // a response began on it
	asked  atomic.Int64  // to be left, if nothing was heard since then; 0 if not
	told   atomic.Bool   // the whole GOAWAY was read
	left   chan struct{} // closed once gRPC has left it, or it is closed
	over   func()        // closes left

	// The reader's.
	frames frames
	unread []byte // of the GOAWAY
}

func newConn(c net.Conn, all *conns) *conn {
	left := make(chan struct{})
	w := &conn{Conn: c, all: all, left: left, over: sync.OnceFunc(func() { close(left) })}
	w.heard.Store(now())
	return w
}

// now is the time since the windows' epoch.
func now() int64 { return int64(time.Since(window.Epoch())) }

// leave asks gRPC to leave the connection if nothing was heard on it since a time. It
// returns false when there is nothing to wait for.
func (c *conn) leave(since int64) bool {
	if !c.framed.Load() || c.heard.Load() >= since {
		return false
	}
	if c.asked.CompareAndSwap(0, since) {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
	}
	return true
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	if c.told.Load() { // gRPC has acted on it
		c.over()
	}
	for len(c.unread) == 0 {
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.heard.Store(now())
			c.framed.Store(c.frames.pass(p[:n]))
			c.served.Store(c.frames.served)
			return n, err
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.asked.Load() == 0 {
			return n, err
		}
		_ = c.Conn.SetReadDeadline(time.Time{}) // before the Swap: see leave
		switch since := c.asked.Swap(0); {
		case c.heard.Load() >= since: // meanwhile
		case !c.frames.between():
			return 0, err // it died within a frame, which nothing but an end can follow
		default:
			c.all.forget(c)
			c.unread = goAway
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	if len(c.unread) == 0 {
		c.told.Store(true)
	}
	return n, nil
}

// SetReadDeadline implements [net.Conn]. gRPC sets one when it begins to close what has no
// calls, and does not read again.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.told.Load() {
		c.over()
	}
	return c.Conn.SetReadDeadline(t)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.all.forget(c)
	c.over()
	return c.Conn.Close()
}

// goAway is the frame by which a server that refuses no stream yet says that it wants no
// more of them: NO_ERROR, with the highest id there is.
var goAway = []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// The types of frames, and the flag of a header block's last.
const (
	frameHeaders      = 1
	frameSettings     = 4
	frameGoAway       = 7
	frameContinuation = 9

	flagEndHeaders = 4
)

// frames follows the frames that a server sends, to know where one could come in between.
type frames struct {
	head   [9]byte
	have   int  // of head
	left   int  // of the frame's payload
	first  bool // a frame has begun
	other  bool // what came is not HTTP/2
	served bool // headers have come
	block  bool // of headers, which no other frame may interrupt (RFC 9113 section 4.3)
}

// pass follows what was read, and reports whether it is HTTP/2. A server begins with
// SETTINGS (RFC 9113 section 3.4), as no other protocol begins.
func (f *frames) pass(p []byte) bool {
	for len(p) > 0 && !f.other {
		if f.left > 0 {
			n := min(f.left, len(p))
			f.left, p = f.left-n, p[n:]
			continue
		}
		n := copy(f.head[f.have:], p)
		f.have, p = f.have+n, p[n:]
		if f.have == len(f.head) {
			f.begin()
		}
	}
	return f.first && !f.other
}

// begin begins a frame whose head is there.
func (f *frames) begin() {
	h := &f.head
	f.have, f.left = 0, int(h[0])<<16|int(h[1])<<8|int(h[2])
	f.other = !f.first && (h[3] != frameSettings || h[5]|h[6]|h[7]|h[8] != 0)
	f.first = true
	if h[3] == frameHeaders || h[3] == frameContinuation {
		f.served, f.block = true, h[4]&flagEndHeaders == 0
	}
}

// between reports whether a frame could come in here.
func (f *frames) between() bool { return f.have == 0 && f.left == 0 && !f.block }
