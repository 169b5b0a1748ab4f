package forward

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// body is the caller's, on its way to the target. A Read that waits for a caller who
// has stopped sending can be ended by its connection alone, so that each has a
// deadline there. Close does not close what the server reads on by itself.
type body struct {
	source io.ReadCloser
	in     *http.ResponseController
	idle   time.Duration // for a Read; 0 is for ever
	most   int64         // bytes; 0 is any number

	n      atomic.Int64 // bytes read
	closed atomic.Bool
	whole  atomic.Bool // read to its end
	both   bool        // the response has begun before that
	mu     sync.Mutex
	err    error // of the source, other than its end
}

// from makes b the body of a request.
func (b *body) from(w http.ResponseWriter, source io.ReadCloser, idle time.Duration, most int64) {
	b.source, b.in, b.idle, b.most = source, http.NewResponseController(w), idle, most
}

// ErrTooLarge is for a body that is longer than it may be.
var ErrTooLarge = errors.New("the request body is too large")

// errClosed is for a Read after Close.
var errClosed = errors.New("read of a closed request body")

// Read implements [io.Reader]. After the body's end the connection is the server's
// again, which looks by itself whether the caller is still there. After any other
// error the time stays over, or the server would wait for the rest before it responds.
func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, errClosed
	}
	if b.idle > 0 {
		_ = b.in.SetReadDeadline(time.Now().Add(b.idle))
	}
	n, err := b.source.Read(p)
	if all := b.n.Add(int64(n)); b.most > 0 && all > b.most {
		n, err = 0, ErrTooLarge
	}
	switch {
	case err == io.EOF:
		b.whole.Store(true)
		if b.idle > 0 {
			_ = b.in.SetReadDeadline(time.Time{})
		}
	case err != nil:
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}

// respond readies the connection for a response that may come before the end of the
// body: the server would take the rest of it for itself, and what the target gets would
// have a hole.
func (b *body) respond() {
	if b.source != nil && !b.whole.Load() {
		b.both = true
		_ = b.in.EnableFullDuplex()
	}
}

// What is read of a body that no one wants any more, so that its caller gets to read the
// response.
const (
	maxRest     = 256 << 10
	maxRestTime = 500 * time.Millisecond
)

// over ends reading for good. When the server has let go of the body, it must be at its
// end or broken before the server is given the connection back: it begins to wait for
// the next request at the body's end, and in a panic would find itself waiting already.
func (b *body) over() {
	b.closed.Store(true)
	if !b.both || b.whole.Load() {
		return
	}
	_ = b.in.SetReadDeadline(time.Now().Add(maxRestTime))
	_, err := io.CopyN(io.Discard, b.source, maxRest)
	if err == io.EOF {
		_ = b.in.SetReadDeadline(time.Time{})
		return
	}
	_ = b.in.SetReadDeadline(time.Unix(1, 0))
}

// fault returns the error of the caller's body, or nil.
func (b *body) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Late reports whether an error of a request's body is that it stood still.
func Late(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
