package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway"
)

// come again or not at all.
func TestRPCRefusals(t *testing.T) {
	dead := server2(t, nil)
	srv := httptest.NewServer(nil)
	gone := srv.URL
	srv.Close()
	open := retryer(t, forbear.Policy{})
	broken := retryer(t, forbear.Policy{Breaker: breaker.Policy{}})
	broken.Breaker().Force(breaker.Open, "test", time.Now())
	full := retryer(t, forbear.Policy{MaxConcurrent: 1})
	_, _ = edge.Begin(t.Context(), full)
	address := start(
		t,
		gateway.Route{Prefix: "/gone", Target: parse(t, gone), Retryer: retryer(t, quick), Transport: clear2(t)},
		gateway.Route{Prefix: "/broken", Target: parse(t, dead), Retryer: broken, Transport: clear2(t)},
		gateway.Route{Prefix: "/full", Target: parse(t, dead), Retryer: full, Transport: clear2(t)},
		gateway.Route{Prefix: "/open", Target: parse(t, dead), Retryer: open, Transport: clear2(t)},
	)
	for _, tc := range []struct {
		path, header, value  string
		code, stop, pushback string
	}{
		{"/none/M", "", "", "12", "", ""},
		{"/gone/M", "Idempotency-Key", "k", "14", "exhausted", "-1"},
		{"/gone/M", "Grpc-Timeout", "1n", "4", "deadline", ""},
		{"/broken/M", "", "", "14", "breaker_open", "-1"},
		{"/full/M", "", "", "8", "bulkhead_full", "-1"},
		{"/open/M", "X-Request-Deadline", "1000", "4", "", "-1"},
	} {
		h := http.Header{"X-Correlation-Id": {"c-1"}}
		if tc.header != "" {
			h.Set(tc.header, tc.value)
		}
		got := invoke(t, address+tc.path+"?token=secret", h, nil)
		if got.err != nil {
			t.Errorf("%s: %v", tc.path, got.err)
			continue
		}
		if got.StatusCode != 200 || got.code != tc.code || !got.alone || got.body != "" || got.message == "" ||
			got.Header.Get("Content-Type") != "application/grpc" || got.Header.Get("X-Correlation-Id") != "c-1" ||
			got.Header.Get("Forbear-Stop") != tc.stop || got.Header.Get("Grpc-Retry-Pushback-Ms") != tc.pushback {
			t.Errorf("%s: %d, code %q, %q, %v", tc.path, got.StatusCode, got.code, got.body, got.Header)
		}
		for _, name := range []string{"Retry-After", "X-Forbear-Retries-Exhausted", "Content-Length", "Cache-Control"} {
			if got.Header.Get(name) != "" {
				t.Errorf("%s: a gRPC status has %s", tc.path, name)
			}
		}
		if strings.Contains(got.message, "secret") || strings.Contains(got.message, "127.0.0.1") {
			t.Errorf("%s: %q", tc.path, got.message)
		}
	}
}

// again.
func TestRPCBreaker(t *testing.T) {
	var seen atomic.Int64
	p := quick
	p.Breaker = breaker.Policy{MinCalls: 10}
	address := beforeRPC(t, p, func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		trailersOnly(w, "14")
	})
	for range 20 {
		invoke(t, address, nil, nil)
	}
	got := invoke(t, address, nil, nil)
	wait, err := strconv.Atoi(got.Header.Get("Grpc-Retry-Pushback-Ms"))
	if seen.Load() != 10 || got.code != "14" || err != nil || wait <= 0 || wait > 60_000 {
		t.Errorf("%d sends, code %q, %v", seen.Load(), got.code, got.Header)
	}
}

// TestRPCBreakerLearnsFromTrailers: a service that sends its headers first, and fails
// then, is as far down as one that fails at once. What the caller gets is not held back.
func TestRPCBreakerLearnsFromTrailers(t *testing.T) {
	for _, tc := range []struct {
		name, message, code string
		seen                int64
	}{
		{"headers", "", "14", 10},
		{"a message", "half", "14", 10},
		{"the fault of the call", "half", "5", 21},
		{"OK", "whole", "0", 21},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var seen atomic.Int64
			p := quick
			p.Breaker = breaker.Policy{MinCalls: 10}
			address := beforeRPC(t, p, func(w http.ResponseWriter, _ *http.Request) {
				seen.Add(1)
				w.Header().Set("Content-Type", "application/grpc")
				_, _ = io.WriteString(w, tc.message)
				_ = http.NewResponseController(w).Flush()
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", tc.code)
			})
			for range 20 {
				if got := invoke(t, address, nil, nil); got.body != tc.message && !got.alone {
					t.Errorf("got %q", got.body)
				}
			}
			got := invoke(t, address, nil, nil)
			if refused := got.Header.Get("Forbear-Stop") == "breaker_open"; seen.Load() != tc.seen || refused != (tc.seen < 21) {
				t.Errorf("%d sends, %v; want %d", seen.Load(), got.Header, tc.seen)
			}
		})
	}
}

// other.
func TestRPCNeedsHTTP2(t *testing.T) {
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "web") })
	got := call(t, http.MethodPost, address+"/up/m", http.Header{"Content-Type": {"application/grpc"}}, nil)
	if got.StatusCode != http.StatusHTTPVersionNotSupported || !strings.Contains(got.body, "HTTP/2") {
		t.Errorf("%d, %s", got.StatusCode, got.body)
	}
	if got := call(t, http.MethodPost, address+"/up/m", http.Header{"Content-Type": {"application/grpc-web+proto"}}, nil); got.body != "web" {
		t.Errorf("gRPC-Web: %d, %s", got.StatusCode, got.body)
	}
}

// not end the connection of HTTP/2, which carries the calls of others.
func TestRefusalLeavesTheConnection(t *testing.T) {
	address := start(t, gateway.Route{Prefix: "/p", Target: parse(t, "http://127.0.0.1:1"), Retryer: retryer(t, quick)})
	tr := clear2(t)
	var reused bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
	for i := range 3 {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address+"/p%2Fa", nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || reused != (i > 0) {
			t.Errorf("request %d: %d, on a connection that was there: %v", i+1, resp.StatusCode, reused)
		}
	}
}
