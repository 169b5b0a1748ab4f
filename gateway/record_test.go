package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/reason"
)

// records collects what a gateway observes.
type records struct {
	mu  sync.Mutex
	all []gateway.Record
}

func (rs *records) observe(_ context.Context, c *gateway.Record) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = append(rs.all, *c)
}

// take returns the record of the only call since the last take.
func (rs *records) take(t *testing.T) gateway.Record {
	t.Helper()
	for range 6000 {
		rs.mu.Lock()
		if len(rs.all) > 0 {
			c := rs.all[0]
			if len(rs.all) > 1 {
				t.Errorf("%d records of one call", len(rs.all))
			}
			rs.all = nil
			rs.mu.Unlock()
			return c
		}
		rs.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no record")
	return gateway.Record{}
}

// TestRecords: each call is recorded once, however it ends.
func TestRecords(t *testing.T) {
	failures := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if failures > 0 {
			failures--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/break" {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "abc")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer up.Close()
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	var rs records
	g, err := gateway.New(gateway.Config{Observe: rs.observe, Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{
		{Prefix: "/up", Target: parse(t, up.URL), Retryer: retryer(t, quick)},
		{Prefix: "/gone", Target: parse(t, "http://127.0.0.1:1"), Retryer: retryer(t, quick)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	defer srv.Close()
	for _, tc := range []struct {
		name, method, path, body string
		failures                 int
		want                     gateway.Record
	}{
		{"first attempt", "PUT", "/up/a?q=1", "12345678", 0, gateway.Record{Route: "/up", Status: 200, Attempts: 1, Received: 8, Sent: 5}},
		{"after retries", "PUT", "/up/a", "12345678", 2, gateway.Record{Route: "/up", Status: 200, Attempts: 3, Received: 8, Sent: 5}},
		{"not retried", "POST", "/up/a", "1", 1, gateway.Record{Route: "/up", Status: 503, Attempts: 1, Received: 1, Reason: "no_idempotency_key"}},
		{"gone", "GET", "/gone/a", "", 0, gateway.Record{Route: "/gone", Status: 502, Attempts: 4, Reason: "exhausted", Sent: -1}},
		{"broken", "GET", "/up/break", "", 0, gateway.Record{Route: "/up", Status: 200, Attempts: 1, Sent: 3, Broken: true}},
		{"no route", "GET", "/none", "", 0, gateway.Record{Status: 404, Sent: -1}},
		{"refused", "GET", "/up/%2e%2e/a", "", 0, gateway.Record{Status: 400, Sent: -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			failures = tc.failures
			req, err := http.NewRequestWithContext(t.Context(), tc.method, srv.URL+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Correlation-Id", "c-1")
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			got := rs.take(t)
			if got.At.IsZero() || got.Duration <= 0 || got.Wait > got.Duration || tc.want.Attempts > 1 && got.Wait == 0 || got.Sent == 0 && tc.want.Sent == -1 {
				t.Errorf("times and bytes of %+v", got)
			}
			got.At, got.Duration, got.Wait = time.Time{}, 0, 0
			if tc.want.Sent == -1 {
				got.Sent = -1
			}
			tc.want.Method, tc.want.CorrelationID = tc.method, "c-1"
			if tc.want.Route != "" {
				tc.want.Dependency = "upstream"
			}
			if got != tc.want {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// TestUpgradesAreRecorded: a call that has changed its protocol is a 101 when it is over.
func TestUpgradesAreRecorded(t *testing.T) {
	var rs records
	up := scripted(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nbye")
	g, err := gateway.New(gateway.Config{Observe: rs.observe, Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{
		{Prefix: "/", Target: parse(t, up), Retryer: retryer(t, quick)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	defer srv.Close()
	if got := raw(t, srv.URL, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\nbye") {
		t.Errorf("got %q", got)
	}
	if c := rs.take(t); c.Status != http.StatusSwitchingProtocols || c.Attempts != 1 {
		t.Errorf("recorded %+v", c)
	}
}

// TestCallersWhoLeaveAnUpload: one who resets the stream has sent nothing wrong.
func TestCallersWhoLeaveAnUpload(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer up.Close()
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	var rs records
	g, err := gateway.New(gateway.Config{Observe: rs.observe, Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{
		{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	address := serveOn(t, nil, g)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body, sent := io.Pipe()
	go func() {
		_, _ = io.WriteString(sent, strings.Repeat("x", 100<<10))
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/x", body)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := caller(t, nil, http2).Do(req); err == nil {
		t.Fatalf("got %d", resp.StatusCode)
	}
	if c := rs.take(t); c.Status != 0 || c.Reason != reason.Canceled.String() {
		t.Errorf("recorded as %d, %q", c.Status, c.Reason)
	}
}

// TestResponsesThatEndTooEarly: one that the gateway or its upstream ends before its end
// is recorded as broken; one that its caller has had enough of is not.
func TestResponsesThatEndTooEarly(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer up.Close()
	var rs records
	g, err := gateway.New(gateway.Config{Observe: rs.observe, Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{
		{Prefix: "/bounded", Target: parse(t, up.URL), Retryer: retryer(t, quick), Limits: gateway.Limits{Timeout: 2 * time.Second}},
		{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	address := serveOn(t, nil, g)
	for _, protocol := range []func(*http.Protocols){http1, http2} {
		c := caller(t, nil, protocol)
		resp, err := c.Get("http://" + address + "/bounded/x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Error("a response that was cut off looks whole")
		}
		_ = resp.Body.Close()
		if got := rs.take(t); !got.Broken || got.Status != http.StatusOK || got.Sent != 3 {
			t.Errorf("%s: at the route's timeout: recorded %+v", resp.Proto, got)
		}
		if resp, err = c.Get("http://" + address + "/x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 3)); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
		c.CloseIdleConnections()
		if got := rs.take(t); got.Broken || got.Status != http.StatusOK {
			t.Errorf("%s: the caller has left: recorded %+v", resp.Proto, got)
		}
	}
}
