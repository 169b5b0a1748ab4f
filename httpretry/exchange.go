package httpretry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/internal/upgrade"
	"github.com/forbear-go/forbear/reason"
)

// exchange is one RoundTrip: the request and what all its attempts share. It
// belongs to the goroutine of RoundTrip and lives on its stack; only bodies that
// were handed over outlive it, and they know their attempt alone.
type exchange struct {
	envelope Envelope // nil for plain HTTP

	t       *transport
	r       *forbear.Retryer
	req     *http.Request
	key     string // made by forbear; "" when the caller brought one or none
	body    *replay
	again   func() (io.ReadCloser, error) // our own GetBody, where the request has none
	next    io.ReadCloser                 // the body of the next attempt, from GetBody
	timeout time.Duration
	idle    time.Duration // of a body
	total   time.Duration
	// reclassed says that the policy may call retryable what is not.
	reclassed bool
	// unkeyed says that the call has no key, needs one, and may go over HTTP/2: see dead.go.
	unkeyed bool
	waits   map[string]string // headers that the policy names
	token   credential.Token  // of the latest attempt, when credentials are set
	// unrefreshed is why no other token could be had after a 401.
	unrefreshed error
	at          *attempt      // under way
	lost        time.Duration // from window.Epoch: when the latest attempt began that its connection may have lost
	late        *lateClose    // ready to be used again, or nil
	last        lastResponse
	cookies     []string          // of responses that were not handed over
	place       *breaker.Bulkhead // to be given back, or nil
}

// prepare reads the facts of R-6 off the request and readies its body for
// replay, if a retry is possible at all.
func (x *exchange) prepare(s *forbear.State, p *forbear.Policy) {
	s.NeedsKey = NeedsKey(x.req.Method) && !p.Idempotent && !layer.Idempotent(x.req.Context())
	s.Refreshable = x.authorized()
	if s.Key = idemkey.Text(x.req.Header.Get(HeaderKey)); s.NeedsKey && s.Key == "" {
		s.Key = idemkey.Text(idemkey.Find(x.req.Header)) // in another spelling
	}
	if s.NeedsKey && s.Key == "" {
		x.key = x.ownKey(p.Keys)
		s.Key = idemkey.Text(x.key)
	}
	x.unkeyed = s.NeedsKey && s.Key == "" && x.t.maySpeakHTTP2(x.req)
	x.prepareBody(s, p)
}

// run sends attempts until one is handed over.
func (x *exchange) run(call *edge.Call) (*http.Response, error) {
	ctx := x.req.Context()
	for {
		a, err := x.newAttempt(call)
		x.at = a
		if err != nil {
			return x.giveUp(call, a, err)
		}
		resp, err := x.t.next.RoundTrip(a.req)
		x.t.learn(a, resp)
		if a.req.Header["Upgrade"] == nil {
			upgrade.Refuse(resp)
		}
		if err = a.explain(err); err != nil {
			x.bury(a, call, err)
			err = redacted(x.req, err)
		}
		f := x.classify(a, resp, err)
		a.visit.End(f)
		if f.Class == forbear.ClassSuccess {
			x.succeed(ctx, call, resp)
			x.handOver(a, resp, nil)
			return resp, nil
		}
		x.rewind(call.State(), &f)
		call.State().ExhaustedBelow = exhaustedBelow(resp, err)
		x.refused(call, resp)
		last := f.Err
		x.unreplayable(call.State(), &f)
		d := call.Fail(ctx, f)
		x.decided(d.Retry)
		if d.Reason != reason.NotReplayable {
			f.Err = last
		}
		if !d.Retry {
			return x.stop(a, resp, err, call.Err(d, f))
		}
		if f.Type == errtype.Resend && d.Reason != reason.Resend {
			// The second dead connection of a call: the server has closed them all,
			// and the next attempt is to have a fresh one.
			x.t.CloseIdleConnections()
		}
		x.discard(a, resp, call)
		if f.Hint.LongerDeadline {
			x.timeout *= 2
		}
		if err := x.wait(call, d, f); err != nil {
			x.closeNext()
			return x.refusedRetry(err)
		}
		if x.last.resp != nil {
			x.keepCookies(x.last.resp)
		}
		x.last.forget()
	}
}

// wait waits for the next attempt. A caller of long ago may leave by closing
// Request.Cancel.
func (x *exchange) wait(call *edge.Call, d forbear.Decision, f forbear.Failure) error {
	ctx, leave := leaving(x.req)
	if leave != nil {
		defer leave()
	}
	return call.Wait(ctx, d, f)
}

// begin begins a call, which may have to wait for its turn.
func (t *transport) begin(r *forbear.Retryer, req *http.Request) (edge.Call, error) {
	ctx, leave := leaving(req)
	if leave != nil {
		defer leave()
	}
	return edge.BeginPaced(ctx, r, t.pacer)
}

// leaving returns the request's context, which Request.Cancel ends as well where it is
// set; leave, which may be nil, releases what that takes.
func leaving(req *http.Request) (ctx context.Context, leave context.CancelFunc) {
	ctx = req.Context()
	//lint:ignore SA1019 net/http obeys it, too
	canceled := req.Cancel
	if canceled == nil {
		return ctx, nil
	}
	left, cancel := context.WithCancel(ctx) // a variable of its own: only this way may allocate
	go func() {
		select {
		case <-canceled:
			cancel()
		case <-left.Done():
		}
	}()
	return left, cancel
}

// refusedRetry ends a call whose retry was granted and then not made: with the last
// response, if there is one and the caller is still there.
func (x *exchange) refusedRetry(err error) (*http.Response, error) {
	defer x.last.forget()
	e, ok := err.(*forbear.Error)
	if !ok || x.last.resp == nil || e.Reason == reason.Canceled || e.Reason == reason.Deadline {
		return nil, err
	}
	resp := x.last.again()
	x.belongs(x.last.a, resp, e)
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	resp.Body = x.last.a.wrap(resp.Body, e)
	return resp, nil
}

// giveUp ends the call because an attempt could not be made: its body could not
// be rewound, its credentials not be had.
func (x *exchange) giveUp(call *edge.Call, a *attempt, err error) (*http.Response, error) {
	f := forbear.Failure{Class: forbear.ClassTerminal, Type: errtype.RequestBody, Err: err}
	why := reason.Terminal
	switch {
	case x.req.Context().Err() != nil:
		f = Classify(x.req, nil, err)
		why = reason.Canceled
	case errors.Is(err, credential.ErrWeak):
		f.Type, why = "weaker_credential", reason.WeakCredential
	case errors.Is(err, credential.ErrRefreshFailed):
		f.Type, why = "refresh_failed", reason.RefreshFailed
	}
	a.end()
	closeBody(a.req)
	return nil, call.Abandon(x.req.Context(), f, why)
}

// classify is Classify with what the attempt knows: whether the caller's body has
// ended it.
func (x *exchange) classify(a *attempt, resp *http.Response, err error) forbear.Failure {
	if x.envelope != nil && err == nil {
		return x.envelope.Classify(resp)
	}
	if err != nil && x.req.Context().Err() == nil {
		if f, ok := a.callersFault(); ok {
			return f
		}
	}
	if errors.Is(err, errNotKept) {
		err = resend.Err // net/http asked for the body in order to send again
	}
	f := classify(x.req, resp, err, time.Time{}, x.waits, false)
	if a.silent && f.Class.Retryable() {
		f.Type = errtype.Silent
	}
	if e, ok := x.envelope.(failer); ok && f.Class != forbear.ClassCanceled && f.Class != forbear.ClassCertificate {
		return e.Failed(f)
	}
	return f
}

// stop hands over the response as it came, with its outcome, or the error alone, where a
// transport returns both against its contract.
func (x *exchange) stop(a *attempt, resp *http.Response, err error, e *forbear.Error) (*http.Response, error) {
	if resp == nil || err != nil {
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		a.end()
		return nil, e
	}
	x.handOver(a, resp, e)
	return resp, nil
}
