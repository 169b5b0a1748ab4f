package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// body is the caller's, on its way to the target. Only a deadline of the caller's
// connection ends a Read that waits for a caller who has stopped sending, so each Read
// has one.
//
// The transport reads on a goroutine of its own, and may still do so when the call is
// over. By then the connection is the server's, for another request perhaps. So it is
// touched under mu, and not after over has been called.
type body struct {
	source  io.ReadCloser // nil for no body
	in      *http.ResponseController
	idle    time.Duration   // for a Read; 0 sets no bound
	most    int64           // bytes; 0 sets no bound
	ended   func()          // called at the end, before Read returns it; nil for nothing
	call    <-chan struct{} // closed with the call; nil for never
	unwatch func() bool     // ends the watch over the call's time; nil without one
	n       atomic.Int64    // bytes read
	both    bool            // the response has begun before the body's end
	shared  bool            // the connection has other calls, too: it is one of HTTP/2
	asks    bool            // the caller sends it when it is told to

	mu      sync.Mutex
	due     time.Time   // of the latest Read
	timer   *time.Timer // of that Read, where the connection is shared
	err     error       // of the source, other than its end
	reading bool        // a Read is in the source
	whole   bool        // read to its end
	closed  bool        // no further Read is made
	gone    bool        // the connection is the server's
	late    bool        // the call's own time is over
	cut     bool        // Close has ended a Read, and the call was under way
}

// from makes b the body of a request r.
func (b *body) from(w http.ResponseWriter, r *http.Request, idle time.Duration, most int64) {
	b.source, b.in, b.idle, b.most = r.Body, http.NewResponseController(w), idle, most
	b.shared = r.ProtoMajor > 1
}

// ErrTooLarge is for a body that is longer than it may be.
var ErrTooLarge = errors.New("the request body is too large")

// errClosed is for a Read after Close.
var errClosed = errors.New("read of a closed request body")

// past is a deadline that ends a Read at once.
var past = time.Unix(1, 0)

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if !b.begin() {
		return 0, errClosed
	}
	n, err := b.source.Read(p)
	if all := b.n.Add(int64(n)); b.most > 0 && all > b.most {
		n, err = 0, ErrTooLarge
	}
	if err == io.EOF && b.ended != nil {
		b.ended()
	}
	b.end(err)
	return n, err
}

// begin gives a Read its time, and reports whether it may begin.
func (b *body) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.late {
		return false
	}
	b.reading = true
	if b.idle > 0 {
		b.due = time.Now().Add(b.idle)
		b.limit()
	}
	return true
}

// limit lets a Read end when it is due. Over HTTP/2 a deadline that passes between two
// Reads, while the target takes nothing, would break the body permanently. It is called with
// mu held.
func (b *body) limit() {
	switch {
	case !b.shared:
		_ = b.in.SetReadDeadline(b.due)
	case b.timer == nil:
		b.timer = time.AfterFunc(b.idle, b.timeUp)
	default:
		b.timer.Reset(b.idle)
	}
}

// timeUp ends a Read that is due.
func (b *body) timeUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading && !b.gone && !time.Now().Before(b.due) {
		_ = b.in.SetReadDeadline(past)
	}
}

// end takes the time away at the body's end, where the connection is the server's again,
// which looks by itself whether the caller is still there. After an error the time stays
// as it is, or the server would wait for the rest before it responds.
func (b *body) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if b.timer != nil {
		b.timer.Stop()
	}
	switch {
	case err == nil:
	case err != io.EOF:
		if !b.closed || Late(err) && b.stood() { // Close ends a Read, too
			b.err = err
		}
	default:
		b.whole = true
		if b.idle > 0 && !b.gone && !b.shared {
			_ = b.in.SetReadDeadline(time.Time{})
		}
	}
}

// stood reports whether the latest Read has had its time, or very nearly: the transport
// may bound it as well, and close the body a moment earlier.
func (b *body) stood() bool {
	return b.idle > 0 && !time.Now().Before(b.due.Add(-b.idle/10))
}

// Close implements [io.Closer]: the rest of the body is not wanted. It ends a Read.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.reading && !b.gone {
		select {
		case <-b.call:
		default:
			b.cut = true
		}
		_ = b.in.SetReadDeadline(past)
	}
	return nil
}

// wasCut reports whether Close has ended a Read of a call that was under way.
func (b *body) wasCut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}

// watch ends a Read with the call's time: the transport waits for that Read. It lasts
// until [body.over].
func (b *body) watch(ctx context.Context) {
	b.call = ctx.Done()
	b.unwatch = context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.err != nil || b.closed || b.reading && b.stood() {
			return // the server takes the end of a Read's time for the caller's leaving
		}
		b.late = true
		if b.reading && !b.gone {
			_ = b.in.SetReadDeadline(past)
		}
	})
}

// respond readies the connection for a response that may come before the end of the
// body: otherwise the server takes the rest of the body, and what the target gets has a
// hole. Such a connection must serve nothing else: when the body never ends, the server
// would take what follows of it for the next request.
//
// A body that was read ahead into memory has no connection that could be readied. Nothing
// is to be done for it, and nothing of it is read here, since another goroutine may.
func (b *body) respond() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.source != nil && !b.whole && !b.unasked() {
		b.both = b.in.EnableFullDuplex() == nil
	}
}

// unasked reports whether the caller holds the body back until it is told to send it,
// and was not.
func (b *body) unasked() bool { return b.asks && b.n.Load() == 0 && !b.reading }

// waits reports the same while others may still read.
func (b *body) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unasked()
}

// last says in a response before the end of the body that it is the connection's last.
func (b *body) last(h http.Header) {
	if b.both {
		h["Connection"] = closes
	}
}

var closes = []string{"close"}

// maxRestTime is how long an unwanted body is read: its caller gets to
// read the response, which the end of a connection with unread bytes may destroy.
const maxRestTime = 500 * time.Millisecond

// over gives the connection back. The server takes what is left of a body before it
// sends a response, and gets little time for that: a caller who has stopped sending would
// not learn why. Where the response has begun, the body is read to its end or broken off
// here: at its end the server would begin to wait for the next request, and panic when it
// finds itself waiting already.
func (b *body) over() {
	if b.unwatch != nil {
		b.unwatch()
	}
	b.mu.Lock()
	b.closed, b.gone = true, true
	if b.timer != nil {
		b.timer.Stop()
	}
	if !b.whole {
		_ = b.in.SetReadDeadline(time.Now().Add(maxRestTime))
	}
	rest := b.both && !b.whole
	b.mu.Unlock()
	if !rest {
		return
	}
	deadline := past
	if _, err := io.Copy(io.Discard, b.source); err == nil {
		deadline = time.Time{}
	}
	_ = b.in.SetReadDeadline(deadline)
}

// fault returns the error of the caller's body, or nil. That a Read was ended with the
// call is not a fault of the caller.
func (b *body) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.late {
		return nil
	}
	return b.err
}

// Late reports whether an error of a request's body is that it stood still.
func Late(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
