package upstream_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// connections counts those that a server has open, and has had.
type connections struct{ open, made atomic.Int64 }

func (c *connections) watch(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		c.open.Add(1)
		c.made.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}

// Under load with connections that live 50 ms no request fails, whatever its method,
// and none gets a connection that is older. Over HTTP/1 and HTTP/2, to the URL's host
// and to endpoints.
func TestAgeFailsNoRequest(t *testing.T) {
	const maxAge, callers = 50 * time.Millisecond, 8
	calls := 400
	if race.Enabled {
		calls = 80
	}
	for _, name := range []string{"HTTP/1", "HTTP/2", "HTTP/1 endpoints"} {
		t.Run(name, func(t *testing.T) {
			var conns connections
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				time.Sleep(time.Millisecond)
			}))
			srv.Config.ConnState = conns.watch
			srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // connections that were not needed
			config := upstream.Config{MaxAge: maxAge, Logger: slog.New(slog.DiscardHandler)}
			if srv.EnableHTTP2 = name == "HTTP/2"; srv.EnableHTTP2 {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			if strings.Contains(name, "endpoints") {
				config.Endpoints = []string{srv.Listener.Addr().String(), strings.Replace(srv.Listener.Addr().String(), "127.0.0.1", "localhost", 1)}
			}
			u := upstream.NewTrusting(t, config, srv)
			var born sync.Map // net.Conn -> when it was made
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for n := range calls {
						requestWithin(t, u, srv.URL, n, maxAge, &born)
					}
				})
			}
			all.Wait()
			if n := conns.made.Load(); n < 3 {
				t.Errorf("%d connections were made: none was too old", n)
			}
			u.Close()
			waitFor(t, &conns.open, 0)
		})
	}
}

// requestWithin makes a POST or a GET, and fails the test when the connection was
// older than maxAge as the request asked for one.
func requestWithin(t *testing.T, u http.RoundTripper, url string, n int, maxAge time.Duration, born *sync.Map) {
	method, body := http.MethodGet, ""
	if n%2 == 0 {
		method, body = http.MethodPost, "body"
	}
	asked := time.Now()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		made, _ := born.LoadOrStore(i.Conn, time.Now())
		if age := asked.Sub(made.(time.Time)); age > maxAge {
			t.Errorf("a connection was %v old", age)
		}
	}})
	req, _ := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	resp, err := u.RoundTrip(req)
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// Without a bound the connection stays; a call under way outlives its connection's
// time.
func TestAgeOfACallUnderWay(t *testing.T) {
	var conns connections
	release := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "done")
	}))
	srv.Config.ConnState = conns.watch
	srv.Start()
	defer srv.Close()
	u, err := upstream.New(upstream.Config{MaxAge: 10 * time.Millisecond})
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
	slow := get("/slow")
	time.Sleep(15 * time.Millisecond)
	_, _ = io.Copy(io.Discard, get("/").Body)
	close(release)
	if body, err := io.ReadAll(slow.Body); err != nil || string(body) != "done" {
		t.Errorf("the call under way got %q, %v", body, err)
	}
	_ = slow.Body.Close()
	if n := conns.made.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}
