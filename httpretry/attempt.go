package httpretry

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/internal/visit"
)

// attempt is one send: the cloned request, its timeout, its watch over
// net/http's re-sends, and later the body of its response. It is one
// allocation, because it is made for every request.
type attempt struct {
	ctx    context.Context // ends with the attempt
	parent context.Context // what ctx was derived from
	cancel context.CancelFunc
	timer  *time.Timer
	limit  time.Duration // of the server's part, up to the headers of its response
	idle   time.Duration // of a body that stands still; 0 sets no bound

	req   *http.Request // the clone, or the caller's own when nothing changes
	body  responseBody
	place atomic.Pointer[breaker.Bulkhead] // given back with the body, or nil

	*extras // nil in the bare attempts of a transport with everything off
}

// extras is the larger part of an attempt.
type extras struct {
	clone  http.Request
	guard  resend.Guard
	visit  visit.Visit
	upload *upload   // nil when the body is not watched
	heard  uint64    // how many responses the transport had when it began
	silent bool      // its connection is dead, as far as can be told
	number [1]string // the value of HeaderAttempt
	due    [1]string // that of HeaderDeadline
}

// full is an attempt with its extras, in one piece.
type full struct {
	attempt
	rest extras
}

// newAttempt clones the request for the attempt that call is about to make.
func (x *exchange) newAttempt(call *forbear.Call) (*attempt, error) {
	t := x.t
	if t.noHeader && t.noTimeout && t.noTrace && x.key == "" &&
		t.credentials == nil && x.envelope == nil && !x.numbered() && !watched(x.req) {
		return x.bareAttempt(call), nil
	}
	f := &full{}
	a := &f.attempt
	a.extras = &f.rest
	a.parent = call.Context(x.req.Context())
	a.visit.Begin(a.parent, x.at.visited())
	a.ctx = &a.visit
	if !t.noTimeout || !t.noTrace {
		a.ctx, a.cancel = context.WithCancel(a.ctx)
	}
	ctx := a.ctx
	if !t.noTrace {
		a.heard, a.guard.Fresh = t.heard.Load(), x.lost
		ctx = a.guard.Watch(ctx, a.cancel)
	}
	a.clone = *x.req.WithContext(ctx)
	a.req = &a.clone
	x.setBody(a)
	if x.unkeyed {
		a.req.GetBody = nil
	}
	x.setHeaders(a, call.Attempt())
	if err := x.authorize(a, call); err != nil {
		return a, err
	}
	limit := call.Limit(x.timeout)
	if x.envelope != nil {
		var err error
		if limit, err = x.envelope.Send(a.req, call.Attempt(), limit); err != nil {
			return a, err
		}
	}
	if !t.noTrace {
		a.guard.Sending(a.req, t.next)
	}
	a.limit, a.idle = limit, x.idle
	ended := a.cancel
	if watched(a.req) {
		ended = a.watchUpload()
	}
	if !t.noTimeout {
		a.timer = time.AfterFunc(a.limit, ended)
	}
	return a, nil
}

// visited returns what the attempt knows of where the attempts of its call went, or
// nil.
func (a *attempt) visited() *visit.Visit {
	if a == nil || a.extras == nil {
		return nil
	}
	return &a.visit
}

// http2 returns what says whether the attempt has a connection of HTTP/2, or nil where
// that is not known.
func (a *attempt) http2() func() bool {
	if a.extras == nil || a.guard.Context == nil {
		return nil
	}
	return a.guard.HTTP2
}

// bareAttempt is newAttempt for a transport that adds nothing. Nothing of such
// an attempt is left when the next one begins, so that one serves the call.
func (x *exchange) bareAttempt(call *forbear.Call) *attempt {
	if x.bare == nil {
		x.bare = &attempt{}
	}
	a := x.bare
	a.req = x.req
	if call.Attempt() > 1 || x.body != nil {
		a.req = x.req.WithContext(call.Context(x.req.Context()))
		x.setBody(a)
	}
	return a
}

// numbered reports whether the caller's request has an attempt number of its
// own, which it must not have got from the request that the caller is serving.
func (x *exchange) numbered() bool { return len(x.req.Header[HeaderAttempt]) > 0 }

// setHeaders gives the clone a header map of its own. The values are shared
// with the caller's request: the transport only adds keys.
func (x *exchange) setHeaders(a *attempt, number int) {
	t := x.t
	if t.noHeader && x.key == "" && t.credentials == nil && !x.numbered() {
		return
	}
	due, timed := a.parent.Deadline()
	timed = timed && !t.noHeader
	// As large as need be: maps of up to eight keys are far cheaper.
	h := make(http.Header, len(a.req.Header)+count(!t.noHeader, timed, x.key != "", t.credentials != nil))
	maps.Copy(h, a.req.Header)
	if t.noHeader {
		delete(h, HeaderAttempt)
	} else {
		a.number[0] = strconv.Itoa(number - 1)
		h[HeaderAttempt] = a.number[:1:1]
	}
	if timed { // the deadline travels on, less what is kept for the way back
		a.due[0] = strconv.FormatInt(due.Add(-SafetyMargin).UnixMilli(), 10)
		h[HeaderDeadline] = a.due[:1:1]
	}
	if x.key != "" {
		h[HeaderKey] = []string{x.key}
	}
	a.req.Header = h
}

// count returns how many of the facts hold.
func count(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}
