package httpretry_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
)

// TestPanicsBelowGiveBackWhatTheyHeld: the place in the bulkhead and the permit
// of the breaker.
func TestPanicsBelowGiveBackWhatTheyHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{
			status(503), status(503),
			func(*http.Request) (*http.Response, error) { panic("below") },
			func(*http.Request) (*http.Response, error) { panic("below") },
			status(200),
		}}
		rt := over(t, s, forbear.Policy{Disabled: true, MaxConcurrent: 1, Breaker: forbear.BreakerPolicy{MinCalls: 2, Probes: 1}})
		send := func() (code int, err error) {
			defer func() { _ = recover() }()
			resp, err := rt.RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
			if err != nil {
				return 0, err
			}
			_ = resp.Body.Close()
			return resp.StatusCode, nil
		}
		_, _ = send()
		_, _ = send()
		time.Sleep(time.Minute) // the breaker has opened, and lets one probe through
		_, _ = send()
		_, _ = send()
		if code, err := send(); code != http.StatusOK {
			t.Errorf("after two panics: %d, %v; want 200", code, err)
		}
	})
}
