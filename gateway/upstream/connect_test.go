package upstream_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/gateway/upstream"
)

// TestNoConnectionIsNoAttempt: a POST that finds an address closed goes to another one,
// with its body, and is sent once.
func TestNoConnectionIsNoAttempt(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, string(text))
	}))
	defer srv.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	u, err := upstream.New(upstream.Config{Endpoints: []string{closed.Addr().String(), srv.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var want []string
	for i := range 40 {
		body := ""
		if i%2 == 0 {
			body = fmt.Sprint("body ", i)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, io.NopCloser(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		if body == "" {
			req.Body = http.NoBody
		}
		resp, err := u.RoundTrip(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_ = resp.Body.Close()
		want = append(want, body)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the living address got %q, want %q", got, want)
	}
}
