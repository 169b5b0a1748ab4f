package httpretry_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// skewed is a server whose clock is ahead by the given time, as far as the deadline
// of a request is concerned.
func skewed(t *testing.T, ahead time.Duration) (below *http.Transport, sends *atomic.Int64) {
	t.Helper()
	sends = &atomic.Int64{}
	h := httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	return piped(t, func(w http.ResponseWriter, r *http.Request) {
		sends.Add(1)
		ms, err := strconv.ParseInt(r.Header.Get(httpretry.HeaderDeadline), 10, 64)
		if err != nil {
			t.Errorf("deadline %q: %v", r.Header.Get(httpretry.HeaderDeadline), err)
		}
		r.Header.Set(httpretry.HeaderDeadline, strconv.FormatInt(ms-ahead.Milliseconds(), 10))
		h.ServeHTTP(w, r)
	}), sends
}

// TestClockSixSecondsOff: a server by whose clock the deadline has passed refuses
// the request. That is the caller's own deadline: asking again would be refused as
// well, and says nothing about the server's health.
func TestClockSixSecondsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 150
		below, sends := skewed(t, 6*time.Second)
		r := quiet(t, forbear.Policy{})
		client := &http.Client{Transport: httpretry.NewTransport(below, r)}
		t.Cleanup(client.CloseIdleConnections)
		for range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://dependency.test/pay?token=s3cret", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text := readAll(t, resp.Body)
			_ = resp.Body.Close()
			cancel()
			var p struct{ Type, Title, Detail string }
			if err := json.Unmarshal([]byte(text), &p); err != nil || resp.StatusCode != http.StatusGatewayTimeout {
				t.Fatalf("%d %s (%v), want 504 with a problem", resp.StatusCode, text, err)
			}
			if !strings.Contains(p.Detail, "passed 1.") || !strings.Contains(p.Detail, "by this server's clock") || strings.Contains(text, "s3cret") {
				t.Fatalf("detail %q does not say by how much the deadline has passed", p.Detail)
			}
			e, ok := httpretry.Outcome(resp)
			if !ok || e.Reason != reason.Deadline || e.Type != "caller_deadline" || e.Failure().Class != forbear.ClassCanceled {
				t.Fatalf("outcome %+v, want deadline of the caller", e)
			}
		}
		if got := sends.Load(); got != calls {
			t.Errorf("%d calls were sent %d times, want once each", calls, got)
		}
		if got := r.Breaker().State(); got != breaker.Closed {
			t.Errorf("the breaker is %v, want closed", got)
		}
	})
}

// TestDeadlineIsTheRequestsOwn: only a request that carried a deadline can be
// refused for it, and only by 504. Otherwise a receiver's word would make its
// failures disappear from the count.
func TestDeadlineIsTheRequestsOwn(t *testing.T) {
	for _, tc := range []struct {
		name    string
		status  int
		value   string
		carried bool
		class   forbear.Class
		label   string
	}{
		{"the deadline", 504, "deadline", true, forbear.ClassCanceled, "caller_deadline"},
		{"another word", 504, "overload", true, forbear.ClassTimeout, "http_504"},
		{"another status", 503, "deadline", true, forbear.ClassTransient, "http_503"},
		{"no deadline was sent", 504, "deadline", false, forbear.ClassTimeout, "http_504"},
	} {
		req := newRequest(t, http.MethodGet, "http://dependency.test/", "", "")
		sent := req.Clone(t.Context())
		if tc.carried {
			sent.Header.Set(httpretry.HeaderDeadline, "1795176000000")
		}
		resp := &http.Response{StatusCode: tc.status, Header: http.Header{httpretry.HeaderNoRetry: {tc.value}}, Body: http.NoBody, Request: sent}
		if f := httpretry.Classify(req, resp, nil); f.Class != tc.class || f.Type != tc.label || tc.class.Retryable() && !f.Hint.Stop {
			t.Errorf("%s: %+v, want %v %s", tc.name, f, tc.class, tc.label)
		}
	}
}
