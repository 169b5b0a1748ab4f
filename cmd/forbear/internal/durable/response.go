package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// stream is a response that is written bit by bit, because it may be larger than
// the memory. Its status is sent before the first byte, so errors after that can
// only cut it off.
type stream struct {
	contentType string
	write       func(io.Writer) error
}

// adapt makes an HTTP handler of an operation: the bound of its body, the headers
// of its response, and a problem for its error. Responses are not to be cached,
// since they may show payloads.
func (s *Service) adapt(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Correlation-ID", correlation(r))
		leave, err := s.admission.enter(r, rt)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer leave()
		r.Body = http.MaxBytesReader(w, r.Body, s.maxRequest)
		if err := cmp.Or(checkPath(r, rt), s.permit(r, rt), s.queries.check(r, rt)); err != nil {
			s.fail(w, r, err)
			return
		}
		if r.ContentLength > s.maxRequest { // it is not asked for: the caller may be waiting for 100
			s.fail(w, r, &http.MaxBytesError{Limit: s.maxRequest})
			return
		}
		status, body, err := s.admission.looks.pass(r, rt)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if a, ok := body.(tagged); ok {
			w.Header().Set("ETag", a.tag)
			if a.location != "" {
				w.Header().Set("Location", a.location)
			}
			body = a.body
		}
		out := s.deadlines.writer(w)
		switch b := body.(type) {
		case nil:
			w.WriteHeader(status)
		case stream:
			w.Header().Set("Content-Type", b.contentType)
			w.WriteHeader(status)
			if r.Method == http.MethodHead {
				return
			}
			if err := b.write(out); err != nil {
				s.log.Warn("response was cut off", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
				panic(http.ErrAbortHandler) // a short response must not look whole
			}
		default:
			text, err := encode(body)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = out.Write(append(text, '\n'))
		}
	}
}

// errBadRequest is the mistake of a caller in the form of a request. A mistake in
// its contents is the store's or the dispatcher's to name. It becomes 400, which
// tells a client not to send the same again.
var errBadRequest = errors.New("bad request")

// faults are the mistakes of callers, each with its status and the kind of its
// problem, and what this process cannot do and another may. The first that an error is
// counts. A new sentinel of the library belongs here: without a row it looks like an
// outage.
var faults = []struct {
	err    error
	status int
	kind   string
}{
	{errBadRequest, http.StatusBadRequest, "bad-request"},
	{queue.ErrInvalid, http.StatusBadRequest, "bad-request"},
	{errPrecondition, http.StatusPreconditionFailed, "precondition-failed"},
	{webhook.ErrVersion, http.StatusPreconditionFailed, "precondition-failed"},
	{errMediaType, http.StatusUnsupportedMediaType, "unsupported-media-type"},
	{webhook.ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{webhook.ErrBlocked, http.StatusUnprocessableEntity, "invalid"},
	{webhook.ErrUnknownEndpoint, http.StatusUnprocessableEntity, "unknown-endpoint"},
	{webhook.ErrUnknownApplication, http.StatusUnprocessableEntity, "unknown-application"},
	{webhook.ErrSuspended, http.StatusForbidden, "suspended"},
	{store.ErrSending, http.StatusConflict, "conflict"},
	{webhook.ErrTaken, http.StatusConflict, "conflict"},
	{webhook.ErrDisabledByOperator, http.StatusForbidden, "disabled-by-operator"},
	{webhook.ErrTooManyEndpoints, http.StatusConflict, "too-many-endpoints"},
	{webhook.ErrInUse, http.StatusConflict, "in-use"},
	{dispatch.ErrRate, http.StatusTooManyRequests, "rate"},
	{errTooMany, http.StatusTooManyRequests, "too-many-requests"},
	{errOverloaded, http.StatusServiceUnavailable, "overloaded"},
	{errStalled, http.StatusRequestTimeout, "body-stalled"},
	{errForbidden, http.StatusForbidden, "forbidden"},
	{sqlstore.ErrTokenExists, http.StatusConflict, "conflict"},
	{sqlstore.ErrTokenNotFound, http.StatusNotFound, "not-found"},
	{webhook.ErrNotFound, http.StatusNotFound, "not-found"},
	{queue.ErrNotFound, http.StatusNotFound, "not-found"},
	{store.ErrDeleting, http.StatusConflict, "conflict"},
	{webhook.ErrConflict, http.StatusConflict, "message-conflict"},
	{queue.ErrState, http.StatusConflict, "conflict"},
	{queue.ErrRedriveLimit, http.StatusConflict, "conflict"},
	{idempotency.ErrNotFound, http.StatusNotFound, "not-found"},
	{idempotency.ErrNotHeld, http.StatusConflict, "conflict"},
	{ErrEventResponse, http.StatusBadRequest, "bad-request"},
	{webhook.ErrUnreadable, http.StatusServiceUnavailable, "unreadable"},
}

// fail turns an error into a problem. What is not known to be the caller's mistake
// is the store's: 503 and no detail, which could hold the database's address. What
// was not acknowledged may be sent again. The detail goes to the log alone.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeProblem(w, r, http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the request is larger than %d bytes: send less, or raise --max-payload of forbear serve", large.Limit))
		return
	}
	for _, f := range faults {
		if !errors.Is(err, f.err) {
			continue
		}
		if f.err == errMediaType {
			w.Header().Set("Accept-Patch", mergePatch) // RFC 5789 section 2.2
		}
		if f.status == http.StatusServiceUnavailable { // a process that can read it may be the next
			w.Header().Set("Retry-After", "1")
		}
		if rate, ok := errors.AsType[*dispatch.RateError](err); ok {
			retryAfter(w, rate.RetryAfter)
		}
		if many, ok := errors.AsType[*tooMany](err); ok {
			retryAfter(w, many.after)
		}
		if f.err == errForbidden {
			s.refused(r, f.status, detail(err))
		}
		writeProblem(w, r, f.status, f.kind, detail(err))
		return
	}
	s.log.Error("request failed", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	w.Header().Set("Retry-After", "1")
	writeProblem(w, r, http.StatusServiceUnavailable, "unavailable", "the database did not accept the request: nothing was acknowledged: try again")
}

// retryAfter says when to come again, in whole seconds.
func retryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(d.Seconds()), 'f', 0, 64))
}

// detail is the text of an error for a problem, whose title has what the errors of this
// package begin with. Several faults are on one line.
func detail(err error) string {
	text := err.Error()
	for _, own := range []error{errBadRequest, errPrecondition, errMediaType, errForbidden, errTooMany, errOverloaded} {
		text = strings.TrimPrefix(text, own.Error()+": ")
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// writeProblem writes a problem. Its instance is the path alone: a query may hold
// what nothing may repeat. It works before adapt has run too, as for an unknown
// path.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, kind, detail string) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(standstill + leftovers))
	problem.Write(w, problem.Problem{
		Type: problem.Namespace + kind, Title: http.StatusText(status), Status: status,
		Detail: detail, Instance: r.URL.EscapedPath(), CorrelationID: cmp.Or(w.Header().Get("X-Correlation-ID"), correlation(r)),
	})
}
