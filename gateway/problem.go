package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/reason"
)

// newProblem returns a problem of one of the gateway's types, of a request that has not
// been sent on.
func newProblem(status int, kind, title, detail string) problem.Problem {
	return problem.Problem{Type: problem.Namespace + kind, Title: title, Status: status, Detail: detail, Outcome: problem.Unsent}
}

// The refusals that need no more than the request itself.
var (
	noRoute      = newProblem(http.StatusNotFound, "no-route", "No such route", "no route of this gateway matches the request's host and path: see gateway.routes in its policy file")
	badMethod    = newProblem(http.StatusMethodNotAllowed, "method", "Method not allowed", "CONNECT and TRACE are not forwarded")
	wrongMethod  = newProblem(http.StatusMethodNotAllowed, "method", "Method not allowed", "no route for this path takes this method")
	bodyTooLarge = newProblem(http.StatusRequestEntityTooLarge, "request-body", "Request body too large", "the request body is longer than the route's max_body")
	badPath      = newProblem(http.StatusBadRequest, "bad-path", "Bad path", "the target has dot segments, a fragment or a user, or cannot be forwarded unchanged")
	badHost      = newProblem(http.StatusBadRequest, "bad-host", "Bad host", "the request's Host or :authority is not a single name or address with an optional port")
	badBody      = newProblem(http.StatusBadRequest, "request-body", "Bad request body", "the request body is not valid HTTP")
	bodyLate     = newProblem(http.StatusRequestTimeout, "request-body", "Request body incomplete", "the rest of the request body did not arrive in time")
	loop         = newProblem(http.StatusLoopDetected, "loop", "Loop detected", "the request has already passed this gateway: a route's url leads back to it")
)

// problem responds with p, completed by the path and the correlation id: a
// caller's report then leads to the log lines of the same request.
func (x *request) problem(w http.ResponseWriter, p problem.Problem) {
	if x.in.ProtoMajor > 1 {
		delete(w.Header(), "Connection") // it would end the calls of others
	}
	if x.rpc != nil {
		x.status(w, p)
		return
	}
	if x.in.ProtoMajor == 1 && x.in.ContentLength != 0 && x.exchange.Received() == 0 {
		// The server reads what there is of the body before it responds. A caller who
		// does not send it gets the response all the same.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime))
	}
	p.Instance, p.CorrelationID = x.in.URL.EscapedPath(), x.id[0]
	problem.Write(w, p)
}

// restTime is how long the server waits for the body of a request that is refused.
const restTime = 500 * time.Millisecond

// full is the problem of a route that has no place left.
func (rt *route) full() problem.Problem {
	p := newProblem(http.StatusServiceUnavailable, "suppressed", "Call suppressed", fmt.Sprintf("all %d concurrent calls that the route allows are under way (max_concurrent)", rt.MaxConcurrent))
	p.Dependency, p.Reason, p.Help = rt.Retryer.Dependency(), reason.BulkheadFull.String(), reason.BulkheadFull.URL()
	return p
}

// upstream is the problem of a target that did not respond.
func (rt *route) upstream(detail string) problem.Problem {
	p := newProblem(http.StatusBadGateway, "upstream", "Upstream failed", detail)
	p.Dependency, p.Outcome = rt.Retryer.Dependency(), problem.Unknown
	return p
}

// failed responds for a dependency that did not. The error's own text stays
// inside: it may hold the URL.
func (x *request) failed(ctx context.Context, w http.ResponseWriter, err error) {
	if x.in.ProtoMajor > 1 && x.in.Context().Err() != nil { // its stream is gone
		x.meter.reason = reason.Canceled
		panic(http.ErrAbortHandler)
	}
	if p, ok := x.own(err); ok {
		w.Header().Set("Connection", "close") // the rest of the request is not read
		x.problem(w, p)
		return
	}
	p := x.route.upstream("the dependency was unreachable or broke the connection")
	if e, ok := errors.AsType[*forbear.Error](err); ok {
		x.meter.reason = e.Reason
		switch {
		case e.Reason != reason.Canceled:
			fill(&p, e)
			x.stopped(w.Header(), e)
			retryAfter(w.Header(), e)
		case x.exchange.Left():
			// One who has closed its side of the connection alone still reads, and
			// would take what the server writes by itself for a success.
			panic(http.ErrAbortHandler)
		default: // the target has failed, and the end of the upload has ended the call
			x.meter.reason = reason.None
			w.Header().Set("Connection", "close") // the rest of the request is not read
			r := (&http.Request{}).WithContext(context.WithoutCancel(ctx))
			if f := httpretry.Classify(r, nil, e.Unwrap()); f.Class != forbear.ClassCanceled {
				p.ErrorType = f.Type
			}
			p.Attempts = e.Attempts
		}
	}
	x.logFailure(err, p.Status)
	x.problem(w, p)
}

// retryAfter says when another call is worth its while, where that is known: a
// breaker's next probe, or a turn under a limit. It is rounded up, since an early call
// would be refused again.
func retryAfter(h http.Header, e *forbear.Error) {
	if e.Until.IsZero() {
		return
	}
	wait := max(time.Until(e.Until), time.Nanosecond)
	h.Set("Retry-After", strconv.FormatInt(int64((wait-1)/time.Second)+1, 10))
}

// own returns the problem of a request that could not be passed on for what its caller
// sent, if that was so. Of a body that broke off the target may have got the beginning.
func (x *request) own(err error) (p problem.Problem, ok bool) {
	p = badBody
	switch fault := x.exchange.BodyError(); {
	case errors.Is(err, forward.ErrPath):
		return badPath, true
	case fault == nil, errors.Is(fault, context.Canceled):
		// The transport bounds a body that stands still, too, and ends it.
		if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Type != errtype.RequestBody {
			return p, false
		}
		p = bodyLate
	case errors.Is(fault, forward.ErrTooLarge):
		p = bodyTooLarge
	case forward.Late(fault): // the server takes that for the caller's leaving, too
		p = bodyLate
	}
	p.Outcome = problem.Unknown
	return p, true
}

// fill describes e in p. Type and status say whether the request may have been carried
// out: they are those of the refusal where no attempt was made, and those of the last
// attempt where one was, whatever ended the call then. Reason, rule and figures are for
// the caller's logs.
func fill(p *problem.Problem, e *forbear.Error) {
	p.Reason, p.Rule, p.ErrorType, p.Attempts = e.Reason.String(), e.Reason.Rule(), e.Type, e.Attempts
	p.Help = e.Reason.URL()
	if e.Unsent() {
		p.Outcome = problem.Unsent
	}
	set := func(status int, kind, title string) {
		p.Status, p.Type, p.Title = status, problem.Namespace+kind, title
	}
	class := e.Failure().Class
	switch {
	case e.Reason == reason.RefreshFailed, e.Reason == reason.WeakCredential:
		set(http.StatusBadGateway, "credentials", "No credentials for the upstream")
	case e.Attempts == 0 && e.Reason == reason.Paced:
		set(http.StatusTooManyRequests, "paced", "No turn in time under the dependency's rate limit")
	case e.Attempts == 0 && e.Reason == reason.Deadline:
		set(http.StatusGatewayTimeout, "deadline", "No time left")
	case e.Attempts == 0 && e.Reason.Suppressed():
		set(http.StatusServiceUnavailable, "suppressed", "Call suppressed")
	case class == forbear.ClassTimeout, e.Type == errtype.CallerDeadline:
		set(http.StatusGatewayTimeout, "timeout", "Upstream timed out")
	case e.Type == errtype.RequestBody: // the caller's own part
		set(bodyLate.Status, "request-body", bodyLate.Title)
	case class == forbear.ClassCertificate:
		set(http.StatusBadGateway, "certificate", "Upstream certificate refused")
	}
	p.Detail = e.Explain()
	if e.Attempts == 0 {
		p.Detail += "; nothing was sent"
		return
	}
	p.Detail += fmt.Sprintf("; attempt %d failed: %s", e.Attempts, cmp.Or(e.Failure().Explain(), e.Type))
}
