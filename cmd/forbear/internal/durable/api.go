package durable

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/webhook"
)

//go:embed openapi.json
var openAPI []byte

// maxRequest bounds a request's body: a message of 256 KiB in base64, and more.
const maxRequest = 1 << 20

// route is one operation of the API.
type route struct {
	method, path string
	serve        func(*http.Request) (status int, answer any, err error)
}

func (s *Service) routes() []route {
	return []route{
		{"POST", "/v1/messages", s.postMessage},
		{"GET", "/v1/messages/{id}", s.getMessage},
		{"GET", "/v1/endpoints", s.listEndpoints},
		{"GET", "/v1/endpoints/{id}", s.getEndpoint},
		{"PUT", "/v1/endpoints/{id}", s.putEndpoint},
		{"PATCH", "/v1/endpoints/{id}", s.patchEndpoint},
		{"POST", "/v1/endpoints/{id}/disable", s.disableEndpoint},
		{"POST", "/v1/endpoints/{id}/test-and-enable", s.testEndpoint},
		{"GET", "/v1/dead-letters", s.listLetters},
		{"GET", "/v1/dead-letters/stats", s.letterStats},
		{"GET", "/v1/dead-letters/export", s.exportLetters},
		{"GET", "/v1/dead-letters/{id}", s.getLetter},
		{"POST", "/v1/dead-letters/{id}/discard", s.discardLetter},
		{"GET", "/v1/redrives", s.listRedrives},
		{"POST", "/v1/redrives", s.postRedrive},
		{"GET", "/v1/redrives/{id}", s.getRedrive},
		{"POST", "/v1/redrives/{id}/pause", s.setRedrive(deadletter.JobPaused)},
		{"POST", "/v1/redrives/{id}/resume", s.setRedrive(deadletter.JobRunning)},
		{"POST", "/v1/redrives/{id}/cancel", s.setRedrive(deadletter.JobCanceled)},
		{"GET", "/v1/alerts", s.listAlerts},
		{"GET", "/v1/alerts/health", s.alertHealth},
		{"POST", "/v1/alerts/test", s.testAlerts},
		{"GET", "/v1/audit", s.listAudit},
		{"GET", "/v1/openapi.json", func(*http.Request) (int, any, error) { return http.StatusOK, json.RawMessage(openAPI), nil }},
	}
}

// handler is the API under /v1/.
func (s *Service) handler(o Options) http.Handler {
	mux := http.NewServeMux()
	paths := map[string]map[string]http.HandlerFunc{}
	for _, r := range s.routes() {
		if paths[r.path] == nil {
			paths[r.path] = map[string]http.HandlerFunc{}
		}
		paths[r.path][r.method] = s.adapt(r)
	}
	for path, methods := range paths {
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if serve := methods[r.Method]; serve != nil {
				serve(w, r)
				return
			}
			w.Header().Set("Allow", allow)
			writeProblem(w, r, http.StatusMethodNotAllowed, "method-not-allowed", "this path takes "+allow)
		})
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, http.StatusNotFound, "not-found", "no such path: see /v1/openapi.json")
	})
	forgery := http.NewCrossOriginProtection()
	forgery.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, http.StatusForbidden, "cross-origin", "a state-changing request from another site")
	}))
	return forgery.Handler(authorize(o, mux))
}

// authorize demands the token, and without one that the request is addressed
// to this very machine: a name that a stranger controls may resolve to it.
func authorize(o Options, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		switch {
		case o.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, r, http.StatusUnauthorized, "unauthorized", "the API token is missing or wrong")
		case o.Token == "" && !loopback.Host(r.Host):
			writeProblem(w, r, http.StatusForbidden, "foreign-host", "without a token the API answers on loopback names only")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// stream is an answer that is written bit by bit.
type stream struct {
	contentType string
	write       func(io.Writer) error
}

func (s *Service) adapt(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		w.Header().Set("X-Correlation-ID", correlation(r))
		status, answer, err := rt.serve(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if a, ok := answer.(tagged); ok {
			w.Header().Set("ETag", a.tag)
			answer = a.body
		}
		switch a := answer.(type) {
		case stream:
			w.Header().Set("Content-Type", a.contentType)
			w.WriteHeader(status)
			if err := a.write(w); err != nil {
				s.log.Warn("answer cut off", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
				panic(http.ErrAbortHandler) // a short answer must not look whole
			}
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(answer)
		}
	}
}

// correlation returns the caller's id, when it is fit to be repeated, or a new
// one.
func correlation(r *http.Request) string {
	if id := inbound.ID(r.Header.Values("X-Correlation-ID")); id != "" {
		return id
	}
	return webhook.NewID("req")
}

// actor names who asks, for the audit.
func actor(r *http.Request) string {
	name := r.Header.Get("X-Forbear-Actor")
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		name = "anonymous"
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return name + " at " + host
}

var errBadRequest = errors.New("bad request")

func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, kind := http.StatusInternalServerError, "internal"
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

// writeProblem responds with a problem document, under the correlation id that
// the response has been given, or else the caller's.
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

// read reads a JSON body; unknown fields are refused, so that a misspelt one
// is not a silent default.
func read(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return err
		}
		return fmt.Errorf("%w: the body is not the expected JSON: %w", errBadRequest, err)
	}
	if dec.More() {
		return fmt.Errorf("%w: more than one JSON value", errBadRequest)
	}
	return nil
}
