package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// TestTheGuidesProgram runs it against a server that is busy once, and against
// one that wants to be left alone for longer than a call may take.
func TestTheGuidesProgram(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n++; {
		case r.URL.Path == "/away":
			w.Header().Set("Retry-After", "100")
			w.WriteHeader(http.StatusServiceUnavailable)
		case n == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	// A budget of its own, however often the test runs in one process.
	client.Transport = httpretry.NewTransport(nil, forbear.Must(forbear.New("payments", payments.Policy())))
	var out strings.Builder
	if err := pay(t.Context(), server.URL, &out); err != nil || out.String() != "paid: 200 OK\n" || n != 2 {
		t.Errorf("%q after %d requests, %v", out.String(), n, err)
	}
	n = 0
	err := pay(t.Context(), server.URL+"/away", &out)
	if !errors.Is(err, forbear.ErrDeadline) || n != 1 {
		t.Errorf("after %d requests: %v", n, err)
	}
	t.Log(err)
}
