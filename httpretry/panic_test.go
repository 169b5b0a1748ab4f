package httpretry_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
)

// TestPanicsBelowGiveBackWhatTheyHeld: the place in the bulkhead and the permit
// of the breaker.
func TestPanicsBelowGiveBackWhatTheyHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failures = 20
		s := &script{steps: append(slices.Repeat([]step{status(503)}, failures),
			func(*http.Request) (*http.Response, error) { panic("below") },
			func(*http.Request) (*http.Response, error) { panic("below") },
			status(200),
		)}
		r := quiet(t, forbear.Policy{Disabled: true, MaxConcurrent: 1, Breaker: breaker.Policy{Probes: 1}})
		rt := httpretry.NewTransport(s, r)
		send := func() (code int, err error) {
			defer func() { _ = recover() }()
			resp, err := rt.RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
			if err != nil {
				return 0, err
			}
			_ = resp.Body.Close()
			return resp.StatusCode, nil
		}
		for range failures {
			_, _ = send()
		}
		if got := r.Breaker().State(); got != breaker.Open {
			t.Fatalf("after %d failures: %v, want open", failures, got)
		}
		time.Sleep(time.Minute) // now it lets one probe through
		_, _ = send()
		_, _ = send()
		if code, err := send(); code != http.StatusOK {
			t.Errorf("after two panics: %d, %v; want 200", code, err)
		}
	})
}
