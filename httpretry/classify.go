package httpretry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/hint"
	"github.com/forbear-go/forbear/edge/httpcode"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/peek"
	"github.com/forbear-go/forbear/internal/resend"
)

// StatusError is what a failed response looks like as an error: it is what a
// [forbear.Error] of an HTTP call unwraps to. It holds nothing of the request
// or the body.
type StatusError int

// Error returns "http status 503 Service Unavailable".
func (e StatusError) Error() string {
	return strings.TrimSpace("http status " + strconv.Itoa(int(e)) + " " + http.StatusText(int(e)))
}

// Classify turns the outcome of one attempt into a failure. Either resp or err
// is set, as [http.RoundTripper] returns them; req is needed in both cases. A
// good response is a failure of class Success. Classify reads nothing of the
// response's body, except that it looks for the problem type in-progress in a
// 409 to a request with an idempotency key; the body can be read afterwards as
// if nothing had happened.
func Classify(req *http.Request, resp *http.Response, err error) forbear.Failure {
	return ClassifyAt(req, resp, err, time.Time{})
}

// ClassifyAt is [Classify] for a response that arrived at the given time, which
// matters to waits that are given as a date without a Date beside them. The zero
// time stands for the present; the clock is then read where it matters only.
func ClassifyAt(req *http.Request, resp *http.Response, err error, now time.Time) forbear.Failure {
	return classify(req, resp, err, now, nil, false)
}

// ClassifyBy is [ClassifyAt] by a policy: with the headers that it reads waits from, see
// [forbear.Policy.WaitHeaders], and for its kind. The delivery of a webhook succeeds with
// 2xx alone: it follows no redirect, and nothing else accepts a message.
func ClassifyBy(p *forbear.Policy, req *http.Request, resp *http.Response, err error, now time.Time) forbear.Failure {
	return classify(req, resp, err, now, p.WaitHeaders, p.Kind == forbear.Webhook)
}

func classify(req *http.Request, resp *http.Response, err error, now time.Time, named map[string]string, delivery bool) forbear.Failure {
	if err != nil {
		return classifyError(req, err)
	}
	if resp == nil {
		return forbear.Failure{Type: errtype.Unknown}
	}
	return classifyResponse(req, resp, now, named, delivery)
}

// classifyError asks in the order of certainty. A refused certificate is one even
// when the caller has gone meanwhile; then the caller's own end explains any
// error; then the errors of this transport, of the network, and of another forbear
// below. What is left is unknown, which stops.
func classifyError(req *http.Request, err error) forbear.Failure {
	f, known := edge.ClassifyNet(err)
	if !known && req.URL != nil && req.URL.Scheme == "https" {
		// As an http.Client would hand it over: a proxy's refusal of the tunnel is
		// known there alone.
		f, known = edge.ClassifyNet(&url.Error{Op: req.Method, URL: "https://" + req.URL.Host, Err: err})
		f.Err = err
	}
	if known && f.Class == forbear.ClassCertificate {
		return f
	}
	switch req.Context().Err() {
	case nil:
	case context.DeadlineExceeded:
		return forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.CallerDeadline, Err: err}
	default:
		return forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.Canceled, Err: err}
	}
	switch {
	case errors.Is(err, resend.Err):
		return forbear.Failure{Class: forbear.ClassTransient, Type: errtype.Resend, Err: err}
	case known:
		return f
	}
	if e, ok := errors.AsType[*forbear.Error](err); ok {
		return e.Failure()
	}
	return forbear.Failure{Type: errtype.Unknown, Err: err}
}

// classifyResponse goes by the status, and reads hints off the headers of
// failures only: a success does not pay for them.
func classifyResponse(req *http.Request, resp *http.Response, now time.Time, named map[string]string, delivery bool) forbear.Failure {
	class := httpcode.Class(resp.StatusCode, delivery)
	if class == forbear.ClassSuccess {
		return forbear.Failure{Class: class}
	}
	f := forbear.Failure{Class: class, Type: httpcode.Label(resp.StatusCode), Err: errorOf(resp.StatusCode)}
	if deadlineRefused(req, resp) {
		return forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.CallerDeadline, Err: f.Err}
	}
	if resp.StatusCode == http.StatusConflict && inProgress(req, resp) {
		f.Class, f.Type, f.Hint.SameKey = forbear.ClassTransient, errtype.InProgress, true
	}
	if !advises(resp.Header) && len(named) == 0 {
		return f
	}
	if now.IsZero() {
		now = time.Now()
	}
	if floor, ok := serverWait(resp.Header, now, resp.StatusCode, named); ok {
		f.Hint.Floor = floor
		f.Hint.Spread = hint.Spread(floor, hint.SpreadShare)
	}
	f.Hint.Stop = saysStop(resp.Header)
	return f
}

// deadlineRefused reports whether a server says that the deadline of the request
// has passed. Only of a request that carried one: a server that was sent none means
// something else, and its failures count.
func deadlineRefused(req *http.Request, resp *http.Response) bool {
	if resp.StatusCode != http.StatusGatewayTimeout || resp.Header.Get(HeaderNoRetry) != NoRetryDeadline {
		return false
	}
	// Each attempt sends a request of its own, with the headers of the transport.
	return len(cmp.Or(resp.Request, req).Header[HeaderDeadline]) > 0
}

// The errors of the two most frequent failures, which a conversion would allocate anew.
var (
	errUnavailable error = StatusError(http.StatusServiceUnavailable)
	errLimited     error = StatusError(http.StatusTooManyRequests)
)

func errorOf(status int) error {
	switch status {
	case http.StatusServiceUnavailable:
		return errUnavailable
	case http.StatusTooManyRequests:
		return errLimited
	}
	return StatusError(status)
}

// saysStop reads the servers' ways of asking not to be retried: the x-should-
// retry of the OpenAI-style SDKs, Stripe's own, and Envoy's mark of an overloaded
// upstream.
func saysStop(h http.Header) bool {
	for _, said := range [...][]string{h["X-Should-Retry"], h["Stripe-Should-Retry"]} {
		if len(said) > 0 && strings.EqualFold(said[0], "false") {
			return true
		}
	}
	return len(h["X-Envoy-Overloaded"]) > 0 || len(h[HeaderNoRetry]) > 0
}

// maxProblem bounds how much of a problem document is looked at.
const maxProblem = 16 << 10

// inProgress reports whether a 409 says that the server is still working on the
// very key that the request carries: the one 409 that may be retried. It puts
// what it has read of the body back.
func inProgress(req *http.Request, resp *http.Response) bool {
	if idemkey.Find(req.Header) == "" && (resp.Request == nil || idemkey.Find(resp.Request.Header) == "") {
		return false
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || resp.Body == nil {
		return false
	}
	head, _, body, _ := peek.Body(resp.Body, maxProblem)
	resp.Body = body
	var problem struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(head, &problem) != nil {
		return false
	}
	return problem.Type == "in-progress" || strings.HasSuffix(problem.Type, "/in-progress") ||
		strings.HasSuffix(problem.Type, ":in-progress") || strings.HasSuffix(problem.Type, "#in-progress")
}
