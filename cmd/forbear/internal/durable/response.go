package durable

import (
	"cmp"
	"io"
	"log/slog"
	"net/http"
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
				s.log.Warn("response cut off", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
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
