package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/examples/programs/internal/flaky"
	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// TestGitHub: the labels are sent three times, and are the same each time.
func TestGitHub(t *testing.T) {
	server := flaky.New(t, httptest.NewServer, func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[{"name": "bug"}]`) })
	t.Setenv("GITHUB_URL", server.URL+"/")
	t.Setenv("GITHUB_TOKEN", "t1")
	guide.Check(t, "sdks#GitHub", main)

	sent := server.Attempts(t, "PUT /repos/forbear-go/forbear/issues/1/labels")
	if got := strings.TrimSpace(string(sent.Body)); got != `["bug"]` {
		t.Errorf("received %q", got)
	}
	if server.Operations() != 1 {
		t.Errorf("%d operations, want one", server.Operations())
	}
}
