package httpretry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// lenient is a policy without anything that could save a dead leaf from the
// layers: no budget to speak of, no breaker.
func lenient(t *testing.T) *forbear.Retryer {
	p := fast
	p.Breaker.Disabled = true
	return quiet(t, p, forbear.WithBudget(budget.NewTokenBucket(1_000_000, 0)))
}

// TestFiveServicesDeep: each service calls the next with three retries, and the
// leaf is dead. One call from outside must not become 4^5 = 1,024.
func TestFiveServicesDeep(t *testing.T) {
	leaf, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	url := leaf.URL
	for range 5 {
		next := url
		client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, lenient(t))}
		t.Cleanup(client.CloseIdleConnections)
		s := httptest.NewServer(httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, next, nil)
			resp, err := client.Do(req)
			if err != nil {
				http.Error(w, "no answer from below", http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
		})))
		t.Cleanup(s.Close)
		url = s.URL
	}
	client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, lenient(t))}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := n.Load(); got > 4 {
		t.Errorf("the leaf saw %d requests for one call, want at most 4", got)
	}
	e, ok := httpretry.Outcome(resp)
	if !ok || e.Reason != reason.ExhaustedBelow {
		t.Errorf("the outermost stopped with %v, want exhausted below", e)
	}
}

// TestWithoutForbearTheLayersMultiply holds the trap: without the mark that
// Inbound sets, each layer retries what the one below has given up.
func TestWithoutForbearTheLayersMultiply(t *testing.T) {
	leaf, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	var call func(depth int) int
	call = func(depth int) int {
		for range 4 {
			if depth == 0 {
				resp, err := http.Get(leaf.URL)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				continue
			}
			call(depth - 1)
		}
		return http.StatusServiceUnavailable
	}
	call(4)
	if n.Load() != 1024 {
		t.Errorf("five loops of four made %d requests, want 1,024", n.Load())
	}
}

func TestACallInsideARetryIsTriedOnce(t *testing.T) {
	leaf, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	client := &http.Client{Transport: httpretry.NewTransport(&http.Transport{}, lenient(t))}
	t.Cleanup(client.CloseIdleConnections)
	s := httptest.NewServer(httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, leaf.URL, nil)
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})))
	t.Cleanup(s.Close)
	const envoy, grpc = "X-Envoy-Attempt-Count", "Grpc-Previous-Rpc-Attempts"
	for said, want := range map[[2]string]int64{
		{}: 4, {httpretry.HeaderAttempt, "0"}: 4, {httpretry.HeaderAttempt, "1"}: 1, {httpretry.HeaderAttempt, "3"}: 1, {httpretry.HeaderAttempt, "x"}: 4,
		{envoy, "1"}: 4, {envoy, "2"}: 1, {envoy, "1001"}: 4, {grpc, "0"}: 4, {grpc, "1"}: 1,
	} {
		n.Store(0)
		req := newRequest(t, http.MethodGet, s.URL, "", "")
		if said[0] != "" {
			req.Header.Set(said[0], said[1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if n.Load() != want {
			t.Errorf("inside attempt %q: %d requests, want %d", said, n.Load(), want)
		}
	}
}

func TestDeadlineTravelsOn(t *testing.T) {
	var got string
	leaf, _ := faulty(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get(httpretry.HeaderDeadline) })
	due := time.Now().Add(10 * time.Second)
	ctx, cancel := context.WithDeadline(t.Context(), due)
	defer cancel()
	resp, _, err := send(t, newRequest(t, http.MethodGet, leaf.URL, "", "").WithContext(ctx), fast)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if want := strconv.FormatInt(due.Add(-100*time.Millisecond).UnixMilli(), 10); got != want {
		t.Errorf("sent %s: %q, want %q", httpretry.HeaderDeadline, got, want)
	}
}

func TestInboundDeadline(t *testing.T) {
	var due time.Time
	var has bool
	h := httpretry.Inbound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { due, has = r.Context().Deadline() }))
	for _, tc := range []struct {
		name, value string
		has         bool
		status      int
	}{
		{"none", "", false, 200},
		{"nonsense", "tomorrow", false, 200},
		{"five seconds", strconv.FormatInt(time.Now().Add(5*time.Second).UnixMilli(), 10), true, 200},
		{"less than the margin", strconv.FormatInt(time.Now().Add(50*time.Millisecond).UnixMilli(), 10), false, 504},
		{"gone by", "1", false, 504},
	} {
		t.Run(tc.name, func(t *testing.T) {
			due, has = time.Time{}, false
			req := httptest.NewRequest(http.MethodGet, "/", nil)
			req.Header.Set(httpretry.HeaderDeadline, tc.value)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if stop := w.Header().Get(httpretry.HeaderNoRetry); (stop == "deadline") != (tc.status == 504) {
				t.Errorf("%s is %q", httpretry.HeaderNoRetry, stop)
			}
			if w.Code != tc.status || has != tc.has {
				t.Errorf("status %d, deadline %v; want %d, %v", w.Code, has, tc.status, tc.has)
			}
			if tc.has && strconv.FormatInt(due.UnixMilli(), 10) != tc.value {
				t.Errorf("deadline %v, want %s", due, tc.value)
			}
		})
	}
}
