package gateway

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/problem"
)

// newProblem returns a problem of one of the gateway's types.
func newProblem(status int, kind, title, detail string) problem.Problem {
	return problem.Problem{Type: problem.Namespace + kind, Title: title, Status: status, Detail: detail}
}

// The refusals that need no more than the request itself.
var (
	noRoute  = newProblem(http.StatusNotFound, "no-route", "No such route", "no route of this gateway matches the request's host or path")
	bodyLate = newProblem(http.StatusRequestTimeout, "request-body", "Request body incomplete", "the rest of the request's body did not come in time")
	badPath  = newProblem(http.StatusBadRequest, "bad-path", "Bad path", "the path has dot segments")
)

// problem responds with p, completed by the path and the correlation id: a
// caller's report then leads to the log lines of the same request.
func (x *incoming) problem(w http.ResponseWriter, p problem.Problem) {
	p.Instance, p.CorrelationID = x.in.URL.EscapedPath(), x.id[0]
	problem.Write(w, p)
}

// upstream is the problem of a target that did not respond.
func (rt *route) upstream(detail string) problem.Problem {
	p := newProblem(http.StatusBadGateway, "upstream", "Upstream failed", detail)
	p.Dependency = rt.Retryer.Dependency()
	return p
}

// failed responds for a dependency that did not. The error's own text stays
// inside: it may hold the URL.
func (rt *route) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := incomingOf(r)
	p := rt.upstream("the dependency could not be reached or broke off")
	if e, ok := errors.AsType[*forbear.Error](err); ok {
		switch {
		case x.late.Load(): // the server takes that for the caller's leaving, too
			x.problem(w, bodyLate)
			return
		case e.Reason == forbear.ReasonCanceled:
			return // the caller has gone
		}
		fill(&p, e)
		stopped(w.Header(), e)
		comeBack(w.Header(), e)
	}
	x.problem(w, p)
}

// comeBack says when a new call may expect its turn, in whole seconds: too late rather
// than too early.
func comeBack(h http.Header, e *forbear.Error) {
	if e.Reason == forbear.ReasonPaced {
		h.Set("Retry-After", strconv.FormatInt(max(int64(math.Ceil(time.Until(e.Until).Seconds())), 1), 10))
	}
}

// fill describes e in p: the status is for the client's own retry policy, the
// reason and the rule are for its logs.
func fill(p *problem.Problem, e *forbear.Error) {
	p.Reason, p.Rule, p.ErrorType, p.Attempts = e.Reason.String(), e.Reason.Rule(), e.Type, e.Attempts
	class := e.Failure().Class
	switch {
	case e.Reason == forbear.ReasonPaced:
		p.Type, p.Title, p.Status = problem.Namespace+"paced", "No turn in time under the dependency's limit", http.StatusTooManyRequests
	case e.Reason == forbear.ReasonBudget, e.Reason == forbear.ReasonBreakerOpen,
		e.Reason == forbear.ReasonUnhealthy, e.Reason == forbear.ReasonBulkheadFull:
		p.Type, p.Title, p.Status = problem.Namespace+"suppressed", "Call or retry suppressed", http.StatusServiceUnavailable
	case e.Reason == forbear.ReasonDeadline || class == forbear.ClassTimeout:
		p.Type, p.Title, p.Status = problem.Namespace+"timeout", "Upstream timed out", http.StatusGatewayTimeout
	case e.Type == errtype.RequestBody: // the caller's own part
		p.Type, p.Title, p.Status = bodyLate.Type, bodyLate.Title, bodyLate.Status
	case e.Reason == forbear.ReasonRefreshFailed, e.Reason == forbear.ReasonWeakCredential:
		p.Type, p.Title = problem.Namespace+"credentials", "No credentials for the upstream"
	case class == forbear.ClassCertificate:
		p.Type, p.Title = problem.Namespace+"certificate", "Upstream certificate refused"
	}
	why := "not retried"
	if err := e.Reason.Err(); err != nil {
		why = err.Error()
	}
	if e.Attempts == 0 {
		p.Detail = why + ": no attempt was made"
		return
	}
	p.Detail = fmt.Sprintf("%s (%s) on attempt %d", why, e.Type, e.Attempts)
}
