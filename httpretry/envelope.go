package httpretry

import (
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
)

// Envelope is one call of a protocol that HTTP only carries: the protocol's own
// envelope in the bodies says what was asked and what came of it. It serves one
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
