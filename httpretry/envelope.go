package httpretry

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
)

// Envelope is one call of a protocol that HTTP only carries: the protocol's own
// envelope in the bodies says what was asked and how it ended. It serves one
// call and one goroutine at a time.
type Envelope interface {
	// Begin completes what the decision must know of the call: whether it
	// needs an idempotency key, and which it has.
	Begin(s *forbear.State)
	// Send completes the clone for the attempt with that number, with a body where
	// the request has none, and returns how long the attempt may take, at most limit.
	Send(req *http.Request, number int, limit time.Duration) (time.Duration, error)
	// Classify judges a response instead of [Classify]. What it reads of the
	// body it puts back.
	Classify(resp *http.Response) forbear.Failure
}

// failer is an [Envelope] whose protocol has its own view of attempts without a response.
type failer interface {
	// Failed returns the failure that f, which is how HTTP sees it, is in the protocol.
	Failed(f forbear.Failure) forbear.Failure
}

// WithEnvelope gives the calls for which find returns an Envelope to that
// envelope's judgment. A request without a body gets one from it; the body of any other
// is sent again as that of plain HTTP is. An envelope that has a method
// Failed(forbear.Failure) forbear.Failure judges attempts without a response as well. One
// that has a method Ended(*http.Response) forbear.Failure is asked again at the end of the
// body of a good response, when its trailers are there: the breaker learns from that.
func WithEnvelope(find func(*http.Request) Envelope) Option {
	return func(t *transport) { t.envelope = find }
}

// openEnvelope looks for the call's envelope and lets it complete s.
func (x *exchange) openEnvelope(s *forbear.State) {
	if x.t.envelope == nil {
		return
	}
	if x.envelope = x.t.envelope(x.req); x.envelope != nil {
		state := *s // a copy: calls without an envelope keep theirs off the heap
		x.envelope.Begin(&state)
		*s = state
	}
}

// ender is an [Envelope] whose protocol says at the end of a response what came of the
// call, in trailers.
type ender interface {
	// Ended judges a response that was handed over as good and has come to its end.
	Ended(resp *http.Response) forbear.Failure
}

// succeed ends a call whose response is good as far as it has come.
func (x *exchange) succeed(ctx context.Context, call *edge.Call, resp *http.Response) {
	e, ok := x.envelope.(ender)
	if !ok || resp.Body == nil || resp.Body == http.NoBody {
		call.Succeed(ctx)
		return
	}
	resp.Body = &endingBody{ReadCloser: resp.Body, resp: resp, judge: e, begun: call.Begun(ctx)}
}

// endingBody judges a response at its end, once. One whose reader leaves before was good
// as far as it came; and a probe of the breaker's is good with its first bytes, since a
// stream may live for hours, and the others wait for it.
type endingBody struct {
	io.ReadCloser
	resp  *http.Response
	judge ender
	begun edge.Begun
	known atomic.Bool
}

// Read implements [io.Reader].
func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended(b.judge.Ended(b.resp))
	case err != nil, n > 0 && b.begun.Probe():
		b.ended(forbear.Failure{Class: forbear.ClassSuccess})
	}
	return n, err
}

// Close implements [io.Closer].
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.ended(forbear.Failure{Class: forbear.ClassSuccess})
	return err
}

func (b *endingBody) ended(f forbear.Failure) {
	if b.known.CompareAndSwap(false, true) {
		b.begun.Ended(f)
	}
}
