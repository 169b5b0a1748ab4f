package httpretry

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/below"
	"github.com/forbear-go/forbear/pace"
)

// defaultBodyLimit is how many bytes of a request's body are kept for replay.
const defaultBodyLimit = 64 << 10

// errNoRetryer is the fault of a transport that was made without a Retryer.
var errNoRetryer = errors.New("httpretry: no Retryer for the request: pass one to NewTransport, or return one from the option that chooses it")

// transport is the RoundTripper. It is safe for concurrent use: what changes during a
// call is in its exchange, and what it learns of its connections is at the end.
type transport struct {
	next      http.RoundTripper
	retryer   *forbear.Retryer
	choose    func(*http.Request) *forbear.Retryer
	envelope  func(*http.Request) Envelope
	bodyLimit int
	noHeader  bool
	noTimeout bool
	streams   bool

	bodyMemory *BodyMemory // nil for no bound

	credentials *credential.Cache
	pacer       *pace.Pacer // nil when the Retryer's own counts

	http1 atomic.Bool   // is what the latest connection of those that may speak HTTP/2 speaks
	heard atomic.Uint64 // how many responses have come
	// flushed is one more than heard was at the latest incident, 0 before one; incident is
	// when that was.
	flushed  atomic.Uint64
	incident atomic.Int64
}

// NewTransport returns a RoundTripper that sends requests through next and
// retries them as r decides. A nil next means a transport of its own, like
// [http.DefaultTransport] with the policy's connect timeout. r may be nil only
// when [WithRetryer] chooses one for every request. The result is safe for
// concurrent use; CloseIdleConnections of an http.Client reaches next.
func NewTransport(next http.RoundTripper, r *forbear.Retryer, opts ...Option) http.RoundTripper {
	t := &transport{next: next, retryer: r, bodyLimit: defaultBodyLimit}
	for _, opt := range opts {
		opt(t)
	}
	if t.next == nil {
		connect := DefaultConnect
		if r != nil {
			connect = r.Policy().Connect
		}
		t.next = below.Transport(connect)
	}
	return t
}

// DefaultConnect bounds the making of a connection where no policy does.
var DefaultConnect = forbear.Policy{}.WithDefaults().Connect

// CloseIdleConnections closes the idle connections of the transport below.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := t.retryer
	if t.choose != nil {
		if chosen := t.choose(req); chosen != nil {
			r = chosen
		}
	}
	if r == nil {
		closeBody(req)
		return nil, errNoRetryer
	}
	noteSend(req)
	req = correlated(r, req)
	call, err := t.begin(r, req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	policy := r.Policy()
	if unhurried(req.Header) {
		policy.BodyIdle = 0
	}
	x := exchange{
		t: t, r: r, req: req, timeout: policy.AttemptTimeout(), idle: policy.BodyIdle, total: policy.Total,
		reclassed: len(policy.Classify) > 0, waits: policy.WaitHeaders, place: call.Hold(),
	}
	if t.streams {
		x.idle = 0
	}
	x.prepare(call.State(), &policy)
	x.openEnvelope(call.State())
	if n := repeated(req.Header); n > 1 {
		call.State().Inner = true // one layer retries, and this one is inside
		edge.Repeated(req.Context(), r, n)
	}
	panicked := true
	defer func() {
		x.body.finish()
		if x.place != nil { // no response has taken it along
			x.place.Leave()
		}
		if panicked {
			x.closeNext()
			if x.at != nil {
				x.at.end()
			}
			call.Aborted()
		}
	}()
	resp, err := x.run(&call)
	panicked = false
	return resp, err
}

// closeBody keeps RoundTripper's promise that the body is closed, whatever
// happens.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// Option changes how a transport works. What it may retry is the policy's.
type Option func(*transport)

// WithRetryer chooses the Retryer for each request, for one transport that
// serves many dependencies. Where it returns nil, the transport falls back to the one passed to
// [NewTransport].
func WithRetryer(choose func(*http.Request) *forbear.Retryer) Option {
	return func(t *transport) { t.choose = choose }
}

// WithBodyLimit sets how many bytes of a request body without GetBody are kept
// for replay. Default 64 KiB; 0 keeps none. A longer body is sent once.
func WithBodyLimit(bytes int) Option {
	return func(t *transport) { t.bodyLimit = max(bytes, 0) }
}

// WithBodyMemory bounds the memory for the bodies that this transport, and all others
// with the same m, keep for replay. Default: no bound beside that of each body.
func WithBodyMemory(m *BodyMemory) Option {
	return func(t *transport) { t.bodyMemory = m }
}

// WithStreams lets bodies stand still for any time, in both directions, whatever the
// policy's BodyIdle: for watches and feeds other than Server-Sent Events, which may
// stand still anyway.
func WithStreams() Option {
	return func(t *transport) { t.streams = true }
}

// WithPacer paces every send of the transport, first attempts and retries: once the
// server has refused some with 429, or with 503 and a Retry-After, each waits for its
// turn within its call's time, or is refused with [reason.Paced]. It takes the
// place of the Retryer's own, as [forbear.WithPacer] sets it.
func WithPacer(p *pace.Pacer) Option {
	return func(t *transport) { t.pacer = p }
}

// WithoutAttemptHeader sends no X-Retry-Attempt.
func WithoutAttemptHeader() Option {
	return func(t *transport) { t.noHeader = true }
}

// WithoutAttemptTimeout leaves attempts without a timeout of their own, for
// callers whose contexts or transports bound each attempt already.
func WithoutAttemptTimeout() Option {
	return func(t *transport) { t.noTimeout = true }
}
