package upstream_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
)

// TestCloseLeavesNoConnection: what is idle goes at once, and what a request still
// uses goes when that request is over.
func TestCloseLeavesNoConnection(t *testing.T) {
	var open atomic.Int64
	release := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "done")
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	srv.Start()
	defer srv.Close()
	u, err := upstream.New(upstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		resp, err := u.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	drain := func(resp *http.Response) {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	slow := get("/slow")
	drain(get("/"))
	if n := open.Load(); n != 2 {
		t.Fatalf("%d connections are open, want 2", n)
	}
	u.Close()
	waitFor(t, &open, 1)
	// A retry of a call that began before: its connection is not kept either.
	drain(get("/"))
	waitFor(t, &open, 1)
	close(release)
	drain(slow)
	waitFor(t, &open, 0)
}

func waitFor(t *testing.T, n *atomic.Int64, want int64) {
	t.Helper()
	for range 6000 {
		if n.Load() == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d connections are open, want %d", n.Load(), want)
}
