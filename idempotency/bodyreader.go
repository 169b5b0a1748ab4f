package idempotency

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// bodyReader reads a request's body, which may neither stand still nor take too
// long. On a server without deadlines, such as a test's, it has the sender's pace.
// Make it with [newBodyReader].
type bodyReader struct {
	from    io.Reader
	control *http.ResponseController
	idle    time.Duration
	until   time.Time // by when all must have come; whoever reads may move it

	moved   atomic.Int64 // when something came last, in nanoseconds since 1970
	refused atomic.Bool  // another body needs the room
}

// newBodyReader returns a reader of the body of the request that w responds to: it
// may stand still for idle, and take d in all.
func newBodyReader(w http.ResponseWriter, body io.Reader, idle, d time.Duration) *bodyReader {
	b := &bodyReader{from: body, control: http.NewResponseController(w), idle: idle, until: time.Now().Add(d)}
	b.moved.Store(time.Now().UnixNano())
	return b
}

// Read implements [io.Reader]. Its error is errStalled or errOverloaded when it was
// cut short.
func (b *bodyReader) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline)
	// After the deadline: else that of refuse could be lost.
	if b.refused.Load() {
		return 0, errOverloaded
	}
	n, err := b.from.Read(p)
	if n > 0 {
		b.moved.Store(time.Now().UnixNano())
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if err = errStalled; b.refused.Load() {
			err = errOverloaded
		}
	}
	return n, err
}

// refuse makes the present or the next Read fail, and reports whether it can. It
// may be called by any goroutine, but only while the body is being read.
func (b *bodyReader) refuse() bool {
	b.refused.Store(true)
	if b.control.SetReadDeadline(time.Unix(1, 0)) != nil {
		b.refused.Store(false)
		return false
	}
	return true
}
