package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/webhook"
)

// stream is a response that is written bit by bit, because it may be larger than
// the memory.
type stream struct {
	contentType string
	write       func(io.Writer) error
}

// adapt makes an HTTP handler of an operation: the bound of its body, the headers
// of its response, and a problem for its error.
func (s *Service) adapt(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		w.Header().Set("X-Correlation-ID", correlation(r))
		status, body, err := rt.serve(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if a, ok := body.(tagged); ok {
			w.Header().Set("ETag", a.tag)
			body = a.body
		}
		switch b := body.(type) {
		case stream:
			w.Header().Set("Content-Type", b.contentType)
			w.WriteHeader(status)
			if err := b.write(w); err != nil {
				s.log.Warn("answer cut off", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
				panic(http.ErrAbortHandler) // a short response must not look whole
			}
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(body)
		}
	}
}

// errBadRequest is the mistake of a caller in the form of a request. A mistake in
// its contents is the store's or the dispatcher's to name.
var errBadRequest = errors.New("bad request")

// fail turns an error into a problem. What is not known to be the caller's mistake
// is the store's: 503 and no detail, which could hold the database's address.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	var status int
	var kind string
	detail := err.Error()
	tooLarge, isLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isLarge:
		status, kind, detail = http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, errBadRequest):
		status, kind = http.StatusBadRequest, "bad-request"
	case errors.Is(err, errPrecondition), errors.Is(err, webhook.ErrVersion):
		status, kind = http.StatusPreconditionFailed, "precondition-failed"
	case errors.Is(err, errMediaType):
		status, kind = http.StatusUnsupportedMediaType, "unsupported-media-type"
		w.Header().Set("Accept-Patch", mergePatch)
	case errors.Is(err, webhook.ErrInvalid), errors.Is(err, webhook.ErrBlocked):
		status, kind = http.StatusUnprocessableEntity, "invalid"
	case errors.Is(err, webhook.ErrUnknownEndpoint):
		status, kind = http.StatusUnprocessableEntity, "unknown-endpoint"
	case errors.Is(err, webhook.ErrNotFound), errors.Is(err, deadletter.ErrNotFound):
		status, kind = http.StatusNotFound, "not-found"
	case errors.Is(err, webhook.ErrConflict):
		status, kind = http.StatusConflict, "message-conflict"
	case errors.Is(err, deadletter.ErrState), errors.Is(err, deadletter.ErrRedriveLimit):
		status, kind = http.StatusConflict, "conflict"
	default:
		// The store: what was not acknowledged may be sent again.
		s.log.Error("request failed", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
		status, kind, detail = http.StatusServiceUnavailable, "unavailable", "the store did not take the request: nothing was acknowledged, try again"
		w.Header().Set("Retry-After", "1")
	}
	writeProblem(w, r, status, kind, detail)
}

// writeProblem writes a problem. Its instance is the path alone: a query may hold
// what nothing may repeat.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, kind, detail string) {
	id := w.Header().Get("X-Correlation-ID")
	if id == "" {
		id = correlation(r)
	}
	problem.Write(w, problem.Problem{
		Type: problem.Namespace + kind, Title: http.StatusText(status), Status: status,
		Detail: detail, Instance: r.URL.EscapedPath(), CorrelationID: id,
	})
}

// nonNil makes an empty list [] in JSON and not null, which clients would have to
// expect everywhere.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
