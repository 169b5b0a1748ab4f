package httpretry

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// Bounds on what is read of a body that is not handed over. Beyond them a new
// connection is cheaper.
const (
	maxDrain     = 256 << 10
	maxDrainTime = 250 * time.Millisecond
)

// discard empties the body of a response that is not handed over, so that its
// connection can be used again, and closes it. The time
// that takes is part of the wait before the next attempt.
func (x *exchange) discard(a *attempt, resp *http.Response, call *forbear.Call) {
	if resp != nil && resp.Body != nil {
		if resp.Body != http.NoBody {
			x.empty(a, resp.Body, call)
		}
		_ = resp.Body.Close()
	}
	a.end()
}

// empty reads body within the bounds and the call's total.
func (x *exchange) empty(a *attempt, body io.ReadCloser, call *forbear.Call) {
	limit := call.Limit(maxDrainTime)
	switch {
	case a.timer == nil:
		x.closeLate(body, limit)
		defer x.inTime()
	case a.timer.Stop(): // the attempt's own timeout serves; when it has fired, reading fails
		a.timer.Reset(min(limit, a.limit))
	}
	drain(body)
}

// lateClose closes a body that takes too long, for attempts that have no
// timeout of their own. The call uses it again, but no other call does: a timer
// must not leave the bubble of a synctest that it was made in.
type lateClose struct {
	timer *time.Timer
	body  io.Closer
}

// closeLate closes body after limit, which ends a Read that hangs.
func (x *exchange) closeLate(body io.Closer, limit time.Duration) {
	if x.late != nil {
		x.late.body = body
		x.late.timer.Reset(limit)
		return
	}
	l := &lateClose{body: body}
	l.timer = time.AfterFunc(limit, func() { _ = l.body.Close() })
	x.late = l
}

// inTime ends a closeLate. One that has fired still holds its body, and is left
// to it.
func (x *exchange) inTime() {
	if !x.late.timer.Stop() {
		x.late = nil
	}
}

// drain reads a body to its end or its bound.
func drain(body io.Reader) {
	block := drainBlocks.Get().(*[drainBlock]byte)
	defer drainBlocks.Put(block)
	for left := maxDrain; left > 0; {
		n, err := body.Read(block[:])
		if left -= n; err != nil {
			return
		}
	}
}

// drainBlock is how much is read at once.
const drainBlock = 4 << 10

// drainBlocks lends the blocks, so that a storm of failures allocates none.
var drainBlocks = sync.Pool{New: func() any { return new([drainBlock]byte) }}
