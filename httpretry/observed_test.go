package httpretry_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// TestObserversHearOfTheBody: what observers are told of a failure names the limit of
// bodies where it ends the call, and nowhere else.
func TestObserversHearOfTheBody(t *testing.T) {
	for _, tc := range []struct {
		name, method string
		status, size int
		limit        int
		disabled     bool
		said         bool
	}{
		{"too long", http.MethodPut, 503, 70 << 10, 64 << 10, false, true},
		{"nothing is kept", http.MethodPut, 503, 10, 0, false, true},
		{"nothing is kept, but it is final", http.MethodPut, 404, 10, 0, false, false},
		{"no key", http.MethodPost, 503, 10, 64 << 10, false, false},
		{"no key, and it is final", http.MethodPost, 404, 10, 64 << 10, false, false},
		{"no retries", http.MethodPut, 503, 10, 64 << 10, true, false},
	} {
		var heard []error
		policy := fast
		policy.Disabled = tc.disabled
		r := quiet(t, policy, forbear.WithObserver(&forbear.Observer{
			AttemptEnded: func(_ context.Context, e forbear.AttemptEnded) { heard = append(heard, e.Failure.Err) },
			Stopped:      func(_ context.Context, e forbear.Stopped) { heard = append(heard, e.Failure.Err) },
		}))
		req, _ := streamed(t, strings.Repeat("x", tc.size))
		req.Method = tc.method
		s := &script{steps: []step{status(tc.status)}}
		resp, err := httpretry.NewTransport(s, r, httpretry.WithBodyLimit(tc.limit)).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(heard) != 2 {
			t.Errorf("%s: %d events", tc.name, len(heard))
		}
		for _, err := range heard {
			if said := strings.Contains(err.Error(), "WithBodyLimit"); said != tc.said {
				t.Errorf("%s: observers hear of %q", tc.name, err)
			}
		}
	}
}
