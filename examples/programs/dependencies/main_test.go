package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear/examples/programs/internal/flaky"
	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// TestDependencies: a search that is down gets one retry, and takes none from the
// payment, which needs two and has one key.
func TestDependencies(t *testing.T) {
	var searches atomic.Int32
	search := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		searches.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer search.Close()
	payments := flaky.New(t, httptest.NewServer, func(r *http.Request) string { return r.Method },
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	t.Setenv("SEARCH_URL", search.URL+"/suggest")
	t.Setenv("PAYMENTS_URL", payments.URL+"/pay")
	guide.Check(t, "dependencies", main)

	if searches.Load() != 2 {
		t.Errorf("the search was asked %d times, want 2", searches.Load())
	}
	paid := payments.Attempts(t, http.MethodPost)
	if string(paid.Body) != `{"amount": 100}` || paid.Header.Get("Idempotency-Key") == "" {
		t.Errorf("received %q with the key %q", paid.Body, paid.Header.Get("Idempotency-Key"))
	}
}
