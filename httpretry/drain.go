package httpretry

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear/edge"
)

// Bounds on how much is read of a body that is not handed over. Beyond them a new
// connection is cheaper.
const (
	maxDrain     = 256 << 10
	maxDrainTime = 250 * time.Millisecond
)

// discard empties the body of a response that is not handed over, so that its
// connection can be used again, and closes it. The time that takes is part of the wait
// before the next attempt.
func (x *exchange) discard(a *attempt, resp *http.Response, call *edge.Call) {
	if resp != nil {
		x.last.resp, x.last.a = resp, a
		if resp.Body != nil {
			if resp.Body != http.NoBody {
				x.empty(a, resp.Body, call)
			}
			_ = resp.Body.Close()
		}
	}
	a.end()
}

// empty reads body within the bounds and the call's total.
func (x *exchange) empty(a *attempt, body io.ReadCloser, call *edge.Call) {
	limit := call.Limit(maxDrainTime)
	switch {
	case a.timer == nil, a.watching():
		if a.watching() {
			a.upload.leave() // which may go on, and would set its timer anew
		}
		x.closeLate(body, limit)
		defer x.inTime()
	case a.timer.Stop(): // the attempt's own timeout serves; when it has fired, reading fails
		a.timer.Reset(min(limit, a.limit))
	}
	x.last.read(body)
}

// lateClose closes a body that takes too long, for attempts whose timer is not
// there or belongs to an upload. The call uses it again, but no other call does: a timer
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

// lastResponse is the response that the next attempt is to replace, with as much of
// its body as fits into a block: it is handed over after all when no attempt may be
// made.
type lastResponse struct {
	resp  *http.Response
	a     *attempt
	block *[drainBlock]byte
	n     int
	whole bool
}

// drainBlock is how much is kept, and read at once.
const drainBlock = 4 << 10

// drainBlocks lends the blocks, so that a storm of failures allocates none.
var drainBlocks = sync.Pool{New: func() any { return new([drainBlock]byte) }}

// read reads a body to its end or its bound.
func (l *lastResponse) read(body io.Reader) {
	l.block = drainBlocks.Get().(*[drainBlock]byte)
	var err error
	for err == nil && l.n < drainBlock {
		var n int
		n, err = body.Read(l.block[l.n:])
		l.n += n
	}
	if l.whole = err == io.EOF; err != nil {
		return
	}
	over := drainBlocks.Get().(*[drainBlock]byte)
	defer drainBlocks.Put(over)
	for left := maxDrain - drainBlock; err == nil && left > 0; {
		var n int
		n, err = body.Read(over[:])
		left -= n
	}
}

// forget gives the block back.
func (l *lastResponse) forget() {
	if l.block != nil {
		drainBlocks.Put(l.block)
	}
	*l = lastResponse{}
}

// errDropped is the end of a body that was let go in favor of a retry.
var errDropped = errors.New("httpretry: the rest of the body was discarded for a retry that could not be made")

// again returns the response with what was kept of its body.
func (l *lastResponse) again() *http.Response {
	if l.resp.Body == nil || l.resp.Body == http.NoBody {
		return l.resp
	}
	var kept []byte
	if l.block != nil {
		kept = bytes.Clone(l.block[:l.n])
	}
	rest := io.Reader(http.NoBody)
	if !l.whole {
		rest = dropped{}
	}
	l.resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(kept), rest))
	return l.resp
}

// dropped is a body of which nothing is left.
type dropped struct{}

func (dropped) Read([]byte) (int, error) { return 0, errDropped }

// A response that is not handed over may have set cookies, such as the one that a
// load balancer keeps its clients by. An http.Client without retries would have put
// them into its jar.

// keepCookies remembers those of a response that is not handed over.
func (x *exchange) keepCookies(resp *http.Response) {
	if set := resp.Header["Set-Cookie"]; len(set) > 0 {
		x.cookies = append(x.cookies, set...)
	}
}

// handCookies gives them to the response that is, before its own, which replace
// those of the same name.
func (x *exchange) handCookies(resp *http.Response) {
	if len(x.cookies) == 0 {
		return
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header["Set-Cookie"] = append(x.cookies, resp.Header["Set-Cookie"]...)
}
