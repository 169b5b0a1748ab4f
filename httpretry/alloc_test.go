package httpretry_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
)

// stub answers from memory; its own cost is subtracted by the tests.
type stub struct {
	statuses []int
	calls    int
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	status := s.statuses[s.calls%len(s.statuses)]
	s.calls++
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req,
	}, nil
}

func quiet(t testing.TB, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	r, err := forbear.New("payments", p, append(opts, forbear.WithoutLog())...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func allocs(t *testing.T, rt http.RoundTripper) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://payments.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(100, func() {
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	})
}

func TestSuccessAllocations(t *testing.T) {
	plain := allocs(t, &stub{statuses: []int{200}})
	r := quiet(t, forbear.Policy{})
	if n := allocs(t, httpretry.NewTransport(&stub{statuses: []int{200}}, r)) - plain; n > 10 {
		t.Errorf("success with headers, timeout and trace: +%v allocations, want at most +10", n)
	}
	off := httpretry.NewTransport(&stub{statuses: []int{200}}, r, bare()...)
	if n := allocs(t, off) - plain; n > 6 {
		t.Errorf("success without headers and timeout: +%v allocations, want at most +6", n)
	}
}

func TestTwoRetriesAllocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two failures in three would open the breaker in the middle.
		r := quiet(t, forbear.Policy{Breaker: breaker.Policy{Disabled: true}},
			forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))
		n := allocs(t, httpretry.NewTransport(&stub{statuses: []int{503, 503, 200}}, r))
		if n > 70 {
			t.Errorf("503, 503, 200: %v allocations, want at most 70", n)
		}
		t.Logf("503, 503, 200: %v allocations", n)
	})
}
