package httpretry

import (
	"errors"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/internal/spread"
	"github.com/forbear-go/forbear/internal/uuid"
)

// defaultBodyLimit is how many bytes of a request's body are kept for replay.
const defaultBodyLimit = 64 << 10

// errNoRetryer is the fault of a transport that was made without a Retryer.
var errNoRetryer = errors.New("httpretry: no Retryer for the request")

// transport is immutable after NewTransport and safe for concurrent use.
type transport struct {
	next      http.RoundTripper
	retryer   *forbear.Retryer
	choose    func(*http.Request) *forbear.Retryer
	envelope  func(*http.Request) Envelope
	bodyLimit int
	spread    float64
	noHeader  bool
	noTimeout bool
	noTrace   bool

	credentials *credential.Cache
}

// NewTransport returns a RoundTripper that sends requests through next and
// retries them as r decides. A nil next means a transport of its own, like
// [http.DefaultTransport] with the policy's connect timeout. r may be nil only
// when [WithRetryer] chooses one for every request. The result is safe for
// concurrent use; CloseIdleConnections of an http.Client reaches next.
func NewTransport(next http.RoundTripper, r *forbear.Retryer, opts ...Option) http.RoundTripper {
	t := &transport{next: next, retryer: r, bodyLimit: defaultBodyLimit, spread: spread.Share}
	for _, opt := range opts {
		opt(t)
	}
	if t.next == nil {
		t.next = newBase(r)
	}
	return t
}

// newBase returns net/http's default transport with the connect timeout of r.
func newBase(r *forbear.Retryer) http.RoundTripper {
	connect := forbear.DefaultConnect
	if r != nil {
		connect = r.Policy().Connect
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	base.DialContext = dialer.DialContext
	return base
}

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
	call, err := r.Begin(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	policy := r.Policy()
	x := exchange{t: t, r: r, req: req, timeout: policy.AttemptTimeout(), total: policy.Total}
	x.prepare(&call.State, &policy)
	x.openEnvelope(&call.State)
	if n := repeated(req.Header); n > 1 {
		call.State.Inner = true // one layer retries, and this one is inside
		r.Repeated(req.Context(), n)
	}
	panicked := true
	defer func() {
		if x.body.finish(); panicked {
			call.Aborted()
		}
	}()
	resp, err := x.run(&call)
	panicked = false
	return resp, err
}

// exchange is one RoundTrip: the request and what all its attempts share.
type exchange struct {
	envelope Envelope // nil for plain HTTP

	t       *transport
	r       *forbear.Retryer
	req     *http.Request
	key     string // made by forbear; "" when the caller brought one or none
	body    *replay
	next    io.ReadCloser // the body of the next attempt, from GetBody
	timeout time.Duration
	total   time.Duration
	token   credential.Token // of the latest attempt, when credentials are set
	// unrefreshed is why no other token could be had after a 401.
	unrefreshed error
	bare        *attempt   // of all attempts that add nothing, or nil
	late        *lateClose // ready to be used again, or nil
}

// ownKey returns the key for a request that brought none: the one that the
// caller's context names, or one that forbear makes, if the policy says so.
func (x *exchange) ownKey(mode forbear.KeyMode) string {
	// A redirect to another origin is another server's operation.
	if key := forbear.IdempotencyKey(x.req.Context()); key != "" && sameOrigin(x.req) {
		return key
	}
	if mode != forbear.KeyGenerate {
		return ""
	}
	if key := keyOfRedirect(x.req); key != "" {
		return key
	}
	return uuid.New()
}

// prepare reads the facts of R-6 off the request and readies its body for
// replay, if a retry is possible at all.
func (x *exchange) prepare(s *forbear.State, p *forbear.Policy) {
	s.NeedsKey = NeedsKey(x.req.Method)
	s.Refreshable = x.authorized()
	s.Key = textproto.TrimString(x.req.Header.Get(HeaderKey)) // as net/http sends it
	if s.NeedsKey && s.Key == "" {
		x.key = x.ownKey(p.Keys)
		s.Key = x.key
	}
	if x.req.Body == nil || x.req.Body == http.NoBody || x.req.GetBody != nil {
		return
	}
	if x.t.bodyLimit == 0 || p.Retries() == 0 || s.NeedsKey && s.Key == "" && !p.RetryUnsent {
		s.Unreplayable = true
		return
	}
	x.body = newReplay(x.req.Body, x.t.bodyLimit)
}

// run sends attempts until one is handed over.
func (x *exchange) run(call *forbear.Call) (*http.Response, error) {
	ctx := x.req.Context()
	for {
		a, err := x.newAttempt(call)
		if err != nil {
			return x.giveUp(call, a, err)
		}
		resp, err := x.t.next.RoundTrip(a.req)
		err = discreet(x.req, a.explain(err))
		f := x.classify(resp, err)
		if f.Class == forbear.ClassSuccess {
			call.Succeed(ctx)
			a.handOver(resp)
			return resp, nil
		}
		x.rewind(&call.State, &f)
		call.State.ExhaustedBelow = exhaustedBelow(resp, err)
		x.refused(call, resp)
		d := call.Fail(ctx, f)
		if !d.Retry {
			x.closeNext()
			return x.stop(a, resp, call.Err(d, f))
		}
		d.Wait -= x.discard(a, resp, call.Start())
		if f.Hint.LongerDeadline {
			x.timeout *= 2
		}
		if err := call.Wait(ctx, d, f); err != nil {
			x.closeNext()
			return nil, err
		}
	}
}

// giveUp ends the call because an attempt could not be made: its body could not
// be rewound, its credentials not be had.
func (x *exchange) giveUp(call *forbear.Call, a *attempt, err error) (*http.Response, error) {
	f := forbear.Failure{Class: forbear.ClassTerminal, Type: "request_body", Err: err}
	reason := forbear.ReasonTerminal
	switch {
	case x.req.Context().Err() != nil:
		f = Classify(x.req, nil, err)
		reason = forbear.ReasonCanceled
	case errors.Is(err, forbear.ErrWeakCredential):
		f.Type, reason = "weaker_credential", forbear.ReasonWeakCredential
	case errors.Is(err, forbear.ErrRefreshFailed):
		f.Type, reason = "refresh_failed", forbear.ReasonRefreshFailed
	}
	a.end()
	closeBody(a.req)
	return nil, call.Abandon(x.req.Context(), f, reason)
}

// classify is Classify with the transport's own spread.
func (x *exchange) classify(resp *http.Response, err error) forbear.Failure {
	if x.envelope != nil && err == nil {
		return x.envelope.Classify(resp)
	}
	f := Classify(x.req, resp, err)
	if x.t.spread != spread.Share {
		f.Hint.Spread = spread.Over(f.Hint.Floor, x.t.spread)
	}
	return f
}

// stop hands over the response as it came, with its outcome, or the error.
func (x *exchange) stop(a *attempt, resp *http.Response, e *forbear.Error) (*http.Response, error) {
	if resp == nil {
		a.end()
		return nil, e
	}
	a.handOver(resp)
	withOutcome(resp, x.req, e)
	return resp, nil
}

// exhaustedBelow reports whether another forbear, in this process or further
// down the wire, has given this call up already.
func exhaustedBelow(resp *http.Response, err error) bool {
	if err != nil {
		return forbear.ExhaustedBelow(err)
	}
	if resp == nil {
		return false // against the contract of RoundTripper, but no reason to panic
	}
	if resp.Header.Get(HeaderExhausted) != "" {
		return true
	}
	e, ok := Outcome(resp)
	return ok && forbear.ExhaustedBelow(e)
}

// sendSeed makes the identities of requests unguessable, since they come from
// outside.
var sendSeed = maphash.MakeSeed()

// noteSend tells an outer retry what is being sent, so that a layer in between
// that repeats it by itself is noticed.
func noteSend(req *http.Request) {
	if _, ok := forbear.AttemptFrom(req.Context()); !ok {
		return
	}
	var h maphash.Hash
	h.SetSeed(sendSeed)
	_, _ = h.WriteString(req.Method)
	for _, part := range [...]string{req.URL.Scheme, req.URL.Host, req.URL.Path, req.URL.RawQuery} {
		_ = h.WriteByte(0)
		_, _ = h.WriteString(part)
	}
	forbear.NoteSend(req.Context(), h.Sum64())
}

// closeBody keeps RoundTripper's promise that the body is closed, whatever
// happens.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
