package upstream

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/mismatch"
)

// deaf is a connection that takes nothing, and on which its server has said a word.
type deaf struct {
	net.Conn
	word  string
	reads int
}

func (d *deaf) Write([]byte) (int, error)       { return 0, errors.New("broken pipe") }
func (d *deaf) SetReadDeadline(time.Time) error { return nil }
func (d *deaf) Read(p []byte) (int, error) {
	d.reads++
	return copy(p, d.word), nil
}

// TestFailedWrites: what a server of HTTP/1 said early may be a response, and is left
// to the reader that waits for it; a client of HTTP/2 has none yet.
func TestFailedWrites(t *testing.T) {
	const word = "HTTP/1.1 413 Content Too Large\r\n"
	for _, tt := range []struct {
		first string
		reads int
		want  error
	}{
		{"POST / HTTP/1.1\r\n", 0, nil},
		{mismatch.Preface, 1, mismatch.HTTP1},
	} {
		below := &deaf{word: word}
		c := &clearConn{Conn: below, found: &atomic.Pointer[mismatch.Error]{}}
		_, err := c.Write([]byte(tt.first))
		if below.reads != tt.reads || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%q: %d reads, %v; want %d, %v", tt.first, below.reads, err, tt.reads, tt.want)
		}
	}
}

// halfway is a connection whose reader has taken the server's word and comes back with it
// some time after another asks for it; the server has hung up.
type halfway struct {
	deaf
	taken, look chan struct{}
}

func (h *halfway) SetReadDeadline(time.Time) error {
	time.AfterFunc(5*time.Millisecond, func() { close(h.look) })
	return nil
}

func (h *halfway) Read(p []byte) (int, error) {
	if h.reads++; h.reads > 1 {
		return 0, io.EOF
	}
	close(h.taken)
	<-h.look
	return copy(p, h.word), nil
}

// TestFailedWriteBesideReader: a write that fails while another goroutine reads waits for
// what that has read.
func TestFailedWriteBesideReader(t *testing.T) {
	below := &halfway{deaf: deaf{word: "\x15\x03\x01\x00\x02\x02\x46"}, taken: make(chan struct{}), look: make(chan struct{})}
	c := &clearConn{Conn: below, found: &atomic.Pointer[mismatch.Error]{}}
	c.http2.Store(true)
	c.wrote.Store(true)
	go func() { _, _ = c.Read(make([]byte, 16)) }()
	<-below.taken
	if _, err := c.Write([]byte("HEADERS")); !errors.Is(err, mismatch.TLS) {
		t.Errorf("got %v, want %v", err, mismatch.TLS)
	}
}
