package below_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/below"
)

type stub struct {
	seen   []string
	closed int
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	s.seen = append(s.seen, req.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

func (s *stub) CloseIdleConnections() { s.closed++ }

// A program that has replaced http.DefaultTransport, as tracing and mocks do, is
// served by what it put there.
func TestReplacedDefault(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	mock := &stub{}
	http.DefaultTransport = mock
	client := &http.Client{Transport: below.Transport(time.Second)}
	http.DefaultTransport = client.Transport // even then it ends
	resp, err := client.Get("http://payments.test/first")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if len(mock.seen) != 1 || mock.seen[0] != "/first" {
		t.Errorf("the transport in place saw %q", mock.seen)
	}
	if client.CloseIdleConnections(); mock.closed != 1 {
		t.Errorf("idle connections closed %d times, want once", mock.closed)
	}
}

// An untouched default is copied: what is changed on it stays ours.
func TestCopyOfTheDefault(t *testing.T) {
	base, ok := below.Transport(time.Second).(*http.Transport)
	if !ok || base == http.DefaultTransport || !base.ForceAttemptHTTP2 || base.Proxy == nil {
		t.Errorf("got %#v, want a copy of the default transport", base)
	}
}
