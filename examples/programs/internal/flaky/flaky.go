// Package flaky is the server that the programs are tested against: it fails the
// first attempts of each operation and keeps what it received.
package flaky

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Failures is how many attempts of each operation get 503.
const Failures = 2

// Server is a running server on loopback. It is safe for concurrent use.
type Server struct {
	*httptest.Server

	mu   sync.Mutex
	seen map[string][]Request
}

// Request is one request as it was received.
type Request struct {
	Header http.Header
	Body   []byte
}

// New starts a server that ends with the test: start is httptest.NewServer or
// httptest.NewTLSServer. Name gives a request's operation; respond serves its later
// attempts, with a body that can be read.
func New(
	t *testing.T, start func(http.Handler) *httptest.Server, name func(*http.Request) string, respond http.HandlerFunc,
) *Server {
	t.Helper()
	s := &Server{seen: map[string][]Request{}}
	s.Server = start(s.handler(name, respond))
	t.Cleanup(s.Close)
	return s
}

func (s *Server) handler(name func(*http.Request) string, respond http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a request that broke off is not one that was received
		}
		operation := name(r)
		s.mu.Lock()
		s.seen[operation] = append(s.seen[operation], Request{r.Header, body})
		n := len(s.seen[operation])
		s.mu.Unlock()
		if n <= Failures {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		respond(w, r)
	}
}

// Received returns the requests of one operation.
func (s *Server) Received(operation string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen[operation])
}

// Attempts returns the first request of an operation that must have come three
// times: two failed attempts and one more, with the same body and the same key,
// if there is one.
func (s *Server) Attempts(t *testing.T, operation string) Request {
	t.Helper()
	const key = "Idempotency-Key"
	got := s.Received(operation)
	if len(got) != Failures+1 {
		t.Fatalf("%s: %d attempts were received, want %d", operation, len(got), Failures+1)
	}
	for i, r := range got {
		if !bytes.Equal(r.Body, got[0].Body) {
			t.Errorf("%s: attempt %d has another body", operation, i+1)
		}
		if r.Header.Get(key) != got[0].Header.Get(key) {
			t.Errorf("%s: attempt %d has the key %q, the first %q", operation, i+1, r.Header.Get(key), got[0].Header.Get(key))
		}
	}
	return got[0]
}

// Operations returns the number of operations that were received.
func (s *Server) Operations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}
