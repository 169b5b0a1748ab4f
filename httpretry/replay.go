package httpretry

import (
	"errors"
	"io"
	"sync"
)

// replay keeps the beginning of a request body that can be read only once, so
// that it can be sent again. It fills while the first attempt sends the body:
// nothing waits for it. The zero value and nil are no use but safe to finish.
//
// net/http may go on reading for an attempt that is over while the next one has
// begun. Reads of the source are therefore serialized, and what each one gets
// goes to the buffer, from where the latest reader takes it.
type replay struct {
	source io.ReadCloser
	limit  int

	reading sync.Mutex // held while the source is read

	mu       sync.Mutex // guards what follows; never held while reading
	buf      []byte
	err      error // the source's end
	over     bool  // longer than limit: cannot be replayed
	open     int   // readers that are not closed
	finished bool  // no further reader will be made
}

// newReplay returns the replay of a body, which from then on is read and closed
// through it alone.
func newReplay(source io.ReadCloser, limit int) *replay {
	return &replay{source: source, limit: limit}
}

// replayable reports whether the body can still be sent from its beginning.
func (r *replay) replayable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.over
}

// reader returns the body from its beginning.
func (r *replay) reader() io.ReadCloser {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open++
	return &replayReader{r: r}
}

// finish says that no further reader will be made. The source is closed with
// the last reader: an upload may outlast its response.
func (r *replay) finish() {
	if r == nil {
		return
	}
	r.mu.Lock()
	last := r.open == 0 && !r.finished
	r.finished = true
	r.mu.Unlock()
	if last {
		_ = r.source.Close()
	}
}

// closed records the end of one reader.
func (r *replay) closed() error {
	r.mu.Lock()
	r.open--
	last := r.open == 0 && r.finished
	r.mu.Unlock()
	if last {
		return r.source.Close()
	}
	return nil
}

// buffered copies what is known to follow offset off into p.
func (r *replay) buffered(p []byte, off int) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off < len(r.buf) {
		return copy(p, r.buf[off:]), nil
	}
	return 0, r.err
}

// keep adds what was read of the source.
func (r *replay) keep(p []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	if r.over || len(r.buf)+len(p) > r.limit {
		r.over, r.buf = true, nil
		return
	}
	r.buf = append(r.buf, p...)
}

// read returns what follows offset off, from the buffer or else the source.
func (r *replay) read(p []byte, off int) (int, error) {
	if n, err := r.buffered(p, off); n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	if n, err := r.buffered(p, off); n > 0 || err != nil {
		return n, err // another reader was here first
	}
	n, err := r.source.Read(p)
	r.keep(p[:n], err)
	return n, err
}

// errBodyClosed is for a Read after Close, which net/http's own bodies refuse too.
var errBodyClosed = errors.New("httpretry: read of a closed request body")

// replayReader reads a replay from its beginning.
type replayReader struct {
	r   *replay
	off int

	mu     sync.Mutex
	closed bool
}

// Read must not be called from two goroutines at once, but may run while Close
// does: net/http closes a body that its writer still reads.
func (b *replayReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return 0, errBodyClosed
	}
	n, err := b.r.read(p, b.off)
	b.off += n
	return n, err
}

// Close may be called more than once, as net/http does.
func (b *replayReader) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if !first {
		return nil
	}
	return b.r.closed()
}
