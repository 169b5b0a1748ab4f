package forward

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// bufferSize is that of the buffers through which bodies are copied.
const bufferSize = 32 << 10

// buffers lends them. It keeps arrays, so that putting one back does not allocate a
// slice's header.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// errCallerLeft is why a body was not copied to its end.
var errCallerLeft = errors.New("the caller has disconnected")

// headerHold is for how long the headers of a response of unknown length wait for its
// first byte: a target that dies at once then becomes a 502 and not half a response.
const headerHold = 10 * time.Millisecond

// copier passes the body of one response on.
type copier struct {
	w     http.ResponseWriter
	resp  *http.Response
	began bool // the headers are written

	mu    sync.Mutex // guards began and the writer while the headers are held
	held  *time.Timer
	ended bool
}

// copy writes the headers and the body. stream says that the caller gets each part at
// once. The error is the body's, or errCallerLeft.
func (c *copier) copy(stream bool) error {
	body := c.resp.Body
	if body == http.NoBody {
		c.begin()
		return nil
	}
	each := stream || c.resp.ContentLength < 0
	switch {
	case stream:
		c.begin()
		flush(c.w)
	case each:
		c.held = time.AfterFunc(headerHold, c.beginLate)
		defer c.end()
	}
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := body.Read(buf[:])
		if werr := c.write(buf[:n], err, each); werr != nil {
			return werr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write passes a part on, which may be empty; err is what its Read returned. each says
// that each part goes out at once.
func (c *copier) write(p []byte, err error, each bool) error {
	if c.held != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if len(p) == 0 && (err == nil || err != io.EOF && !c.began) {
		return nil
	}
	c.begin()
	if len(p) == 0 {
		return nil
	}
	if _, err := c.w.Write(p); err != nil {
		return errCallerLeft
	}
	if each && err != io.EOF {
		flush(c.w)
	}
	return nil
}

func (c *copier) begin() {
	if !c.began {
		c.began = true
		c.w.WriteHeader(c.resp.StatusCode)
	}
}

// end takes the timer away, which may have fired already.
func (c *copier) end() {
	c.held.Stop()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
}

// beginLate sends the headers of a response whose body is still to come.
func (c *copier) beginLate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.began && !c.ended {
		c.begin()
		flush(c.w)
	}
}

// unreadTime is for how long a write may outlast the call's time.
const unreadTime = 500 * time.Millisecond

// writeBound ends the writes of a response some time after the call's own time is over:
// a caller who does not read would block them without end.
type writeBound struct {
	mu    sync.Mutex
	late  *time.Timer
	ended bool // the connection is the server's
}

// boundWrites bounds the writes of a call that ends at due.
func boundWrites(w http.ResponseWriter, due time.Time) *writeBound {
	b := &writeBound{}
	b.late = time.AfterFunc(max(time.Until(due.Add(unreadTime)), unreadTime), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.ended {
			_ = http.NewResponseController(w).SetWriteDeadline(past)
		}
	})
	return b
}

// end is called when nothing more is written.
func (b *writeBound) end() {
	b.late.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}
