package httpretry

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/internal/hint"
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
	next    io.ReadCloser // the body of the next attempt, from GetBody
	timeout time.Duration
	total   time.Duration
	token   credential.Token // of the latest attempt, when credentials are set
	// unrefreshed is why no other token could be had after a 401.
	unrefreshed error
	bare        *attempt   // of all attempts that add nothing, or nil
	late        *lateClose // ready to be used again, or nil
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
		err = redacted(x.req, a.explain(err))
		f := x.classify(resp, err)
		if f.Class == forbear.ClassSuccess {
			call.Succeed(ctx)
			a.handOver(resp)
			return resp, nil
		}
		x.rewind(&call.State, &f)
		call.Facts.ExhaustedBelow = exhaustedBelow(resp, err)
		x.refused(call, resp)
		d := call.Fail(ctx, f)
		if !d.Retry {
			x.closeNext()
			return x.stop(a, resp, call.Err(d, f))
		}
		x.discard(a, resp, call)
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
	if x.t.spread != hint.SpreadShare {
		f.Hint.Spread = hint.Spread(f.Hint.Floor, x.t.spread)
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
