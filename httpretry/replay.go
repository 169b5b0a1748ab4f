package httpretry

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"sync"
)

// replay gives a request body several times that can be read only once, or that
// shares one place to read at. A body that can seek is read from where it stood, and
// costs no memory. Of another one the beginning is kept, while the first attempt
// sends it: nothing waits for it. The zero value and nil cannot be used, but may be finished.
//
// net/http may go on reading for an attempt that is over while the next one has
// begun. Reads of the source are therefore serialized, and what each one gets
// goes to the buffer, from where the latest reader takes it. An earlier reader makes
// nothing be forgotten: what its last Read got may be more than limit, and is kept.
type replay struct {
	source io.ReadCloser
	limit  int

	trailer http.Header // of the caller's request, which the source fills at its end
	names   http.Header // what it was before; nil for none

	reading sync.Mutex // held while the source is read
	seeker  io.Seeker  // the source, if it can seek, else nil
	start   int64      // where it stood
	at      int64      // where it stands, from start

	mu       sync.Mutex // guards what follows; never held while reading
	kept     kept
	err      error         // the source's end
	over     bool          // longer than limit, or than the memory for it: cannot be replayed
	refused  bool          // the memory was the reason
	caughtUp bool          // the latest reader has read all that is kept
	held     bool          // another reader may be made: nothing is forgotten
	latest   int           // the number of the latest reader
	readBy   *replayReader // whose Read of the source is under way; nil for none
	open     int           // readers that are not closed
	finished bool          // no further reader will be made
	closed   bool          // the source is
}

// newReplay returns the replay of a body, which from then on is read and closed
// through it alone; nil when it cannot seek and nothing may be kept.
func newReplay(source io.ReadCloser, limit int, memory *BodyMemory) *replay {
	r := &replay{source: source, limit: limit, kept: kept{memory: memory}}
	if seeker, ok := unwrapped(source).(io.Seeker); ok {
		// What cannot say where it stands, such as the file of a pipe, is read.
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			r.seeker, r.start = seeker, start
		}
	}
	if r.seeker == nil && limit == 0 {
		return nil
	}
	return r
}

// again returns the GetBody of an attempt with these trailers; for apart see
// [replayReader].
func (r *replay) again(trailer http.Header, apart func() bool) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		if !r.hold() {
			return nil, errNotKept
		}
		// net/http forgets to close what it asks for when it then finds no
		// connection, so that this one counts from its first Read.
		return &replayReader{r: r, number: r.next(), trailer: trailer, apart: apart, unread: true}, nil
	}
}

// announce says which trailers the body has. Each attempt gets a map of its own: the
// source fills the caller's when it ends, for one attempt perhaps that is over, while
// another one writes their names.
func (r *replay) announce(trailer http.Header) {
	if r != nil && len(trailer) > 0 {
		r.trailer, r.names = trailer, maps.Clone(trailer)
	}
}

// fill gives the trailers of an attempt the values that the source has left.
func (r *replay) fill(trailer http.Header) {
	r.reading.Lock()
	defer r.reading.Unlock()
	for name := range trailer {
		trailer[name] = r.trailer[name]
	}
}

// errNotKept is why a body cannot be sent again, where net/http asks for it.
var errNotKept = errors.New("httpretry: the request body is longer than the replay buffer: set GetBody, or raise httpretry.WithBodyLimit")

// hold reports whether the body can still be sent from its beginning. It stays so
// until next or release.
func (r *replay) hold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = !r.over
	return r.held
}

// release ends a hold after which there is no other reader: the upload may go on.
func (r *replay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
}

// next ends a hold after which there is another reader, and returns its number. The
// readers before it are of the past.
func (r *replay) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.caughtUp = false, false
	r.latest++
	return r.latest
}

// isLatest reports whether that reader is not of the past.
func (r *replay) isLatest(number int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return number == r.latest
}

// forget gives up the beginning. It is called with mu held.
func (r *replay) forget() {
	r.over = true
	r.kept.drop()
}

// noMemory reports whether the beginning was given up for want of memory.
func (r *replay) noMemory() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// reader returns the body from its beginning, for the latest reader: that of an attempt
// with these trailers; for apart see [replayReader].
func (r *replay) reader(trailer http.Header, apart func() bool) io.ReadCloser {
	r.opened()
	r.mu.Lock()
	defer r.mu.Unlock()
	return &replayReader{r: r, number: r.latest, trailer: trailer, apart: apart}
}

func (r *replay) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open++
}

// finish says that no further reader will be made, so that what all have read is not
// kept. The source is closed with the last reader: an upload may outlast its response.
func (r *replay) finish() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.finished = true
	// What an earlier reader's Read brings is still for the latest.
	if r.caughtUp && (r.readBy == nil || r.readBy.number == r.latest) {
		r.forget()
	}
	r.mu.Unlock()
	_ = r.closeUnused()
}

// Close closes the source at once, under a Read that may never return without it.
func (r *replay) Close() error {
	r.mu.Lock()
	r.open, r.finished = 0, true
	r.mu.Unlock()
	return r.closeUnused()
}

// closeReader records the end of one reader.
func (r *replay) closeReader() error {
	r.mu.Lock()
	r.open--
	r.mu.Unlock()
	return r.closeUnused()
}

// closeUnused closes the source, once, when it will not be read again.
func (r *replay) closeUnused() error {
	r.mu.Lock()
	last := r.finished && r.open <= 0 && !r.closed
	if last {
		r.closed, r.err = true, errBodyClosed
		r.forget()
	}
	r.mu.Unlock()
	if last {
		return r.source.Close()
	}
	return nil
}

// buffered copies what is known to follow the place of b into p. It refuses an earlier
// reader what it would have to read beyond the limit, or could have missed.
func (r *replay) buffered(p []byte, b *replayReader) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	earlier := b.number != r.latest
	switch {
	case earlier && r.over:
		return 0, errBodyClosed
	case b.off < int64(r.kept.size):
		return copy(p, r.kept.from(int(b.off))), nil
	case earlier && r.err == nil && (r.kept.size >= r.limit || r.kept.full()):
		return 0, errBodyClosed
	}
	r.caughtUp = r.caughtUp || !earlier
	return 0, r.err
}

// keep adds what b has read of the source.
func (r *replay) keep(p []byte, err error, b *replayReader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readBy = nil; r.closed {
		return
	}
	r.err = err
	must := r.held || b.number != r.latest
	r.caughtUp = b.number == r.latest
	switch {
	case r.over:
	case !must && (r.finished || r.kept.size+len(p) > r.limit):
		r.forget()
	case !r.kept.add(p, must):
		r.refused = true
		r.forget()
	}
}

// seek reads what follows offset off from a source that can seek.
func (r *replay) seek(p []byte, off int64) (int, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.at != off {
		if _, err := r.seeker.Seek(r.start+off, io.SeekStart); err != nil {
			return 0, err
		}
	}
	n, err := r.source.Read(p)
	r.at = off + int64(n)
	return n, err
}

// read returns what follows the place of b, from the buffer or else the source.
func (r *replay) read(p []byte, b *replayReader) (int, error) {
	if r.seeker != nil {
		return r.seek(p, b.off)
	}
	if n, err := r.buffered(p, b); n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	if b.left != nil {
		return r.readApart(p, b)
	}
	return r.readSource(p, b)
}

// readSource waits for the next bytes of the source, whichever reader gets them.
func (r *replay) readSource(p []byte, b *replayReader) (int, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	if n, err := r.buffered(p, b); n > 0 || err != nil {
		return n, err // another reader was here first
	}
	if !r.begins(b) {
		return 0, errBodyClosed
	}
	n, err := r.source.Read(p)
	r.keep(p[:n], err, b)
	return n, err
}

// begins notes that b reads the source, which an earlier reader may not do once the
// beginning is given up.
func (r *replay) begins(b *replayReader) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over && b.number != r.latest {
		return false
	}
	r.readBy = b
	return true
}

// errBodyClosed is for a Read after Close, which net/http's own bodies refuse too.
var errBodyClosed = errors.New("httpretry: read of a closed request body")

// replayReader reads a replay from its beginning.
//
// Over HTTP/2 net/http closes the body of a stream that has failed and then waits for the
// Read under way. The source cannot be closed for that: the next attempt is to read it.
// So where apart says that an attempt goes over such a connection, Close ends the Read of
// the reader alone, and that of the source goes on. And what it closed before it read any of
// it, when it lost the connection, it may read after all on the next one.
type replayReader struct {
	r       *replay
	number  int
	off     int64
	trailer http.Header   // of the attempt, filled at the end
	apart   func() bool   // nil for never
	left    chan struct{} // closed by Close, where Reads are apart

	mu     sync.Mutex
	unread bool // and not among the open ones before it is read
	begun  bool // a Read was
	closed bool
}

// Read must not be called from two goroutines at once, but may run while Close
// does: net/http closes a body that its writer still reads.
func (b *replayReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	if !b.begun && (b.unread || b.closed && b.r.isLatest(b.number)) {
		b.unread, b.closed = false, false
		b.r.opened()
	}
	b.begun = true
	closed := b.closed
	if b.left == nil && !closed && b.apart != nil && b.apart() {
		b.left = make(chan struct{})
	}
	b.mu.Unlock()
	if closed {
		return 0, errBodyClosed
	}
	n, err := b.r.read(p, b)
	if n > 0 { // a Read that was left looks at the place
		b.off += int64(n)
	}
	if err == io.EOF && b.trailer != nil {
		b.r.fill(b.trailer)
	}
	return n, err
}

// Close may be called more than once, as net/http does.
func (b *replayReader) Close() error {
	b.mu.Lock()
	first := !b.closed && !b.unread
	if b.left != nil && !b.closed {
		close(b.left)
	}
	b.closed = true
	b.mu.Unlock()
	if !first {
		return nil
	}
	return b.r.closeReader()
}
