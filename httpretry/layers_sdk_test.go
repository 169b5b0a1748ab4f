package httpretry_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/httpretry"
)

// layerCount counts the reports of other layers that retry.
type layerCount struct {
	reports, sends int
	above          bool
}

func (c *layerCount) LayeredRetry(_ context.Context, e forbear.LayeredRetry) {
	c.reports++
	c.sends = e.Sends
	c.above = e.Above
}

// TestAnSDKAboveThatRetries is recognized by what it says of itself: inside its
// retries there is one attempt, and it is reported once.
func TestAnSDKAboveThatRetries(t *testing.T) {
	for _, tc := range []struct {
		name, header, value string
		attempt             int // of the SDK; 0 when nothing is said
	}{
		{"nothing", "X-Other", "1", 0},
		{"first of a Stainless SDK", "X-Stainless-Retry-Count", "0", 0},
		{"third of a Stainless SDK", "X-Stainless-Retry-Count", "2", 3},
		{"first of AWS", "Amz-Sdk-Request", "attempt=1; max=3", 0},
		{"second of AWS", "Amz-Sdk-Request", "ttl=20260101T000000Z; attempt=2; max=3", 2},
		{"first of Google Cloud", "X-Goog-Api-Client", "gl-go/1.26 gccl/1.0 gccl-attempt-count/1", 0},
		{"second of Google Cloud", "X-Goog-Api-Client", "gccl-attempt-count/2 gl-go/1.26", 2},
		{"first of Envoy", "X-Envoy-Attempt-Count", "1", 0},
		{"second of Envoy", "X-Envoy-Attempt-Count", "2", 2},
		{"first of gRPC", "Grpc-Previous-Rpc-Attempts", "0", 0},
		{"second of gRPC", "Grpc-Previous-Rpc-Attempts", "1", 2},
		{"an absurd number of Envoy", "X-Envoy-Attempt-Count", "1001", 0},
		{"a number that is none", "X-Stainless-Retry-Count", "-1", 0},
		{"an absurd number", "X-Stainless-Retry-Count", "99999999999999999999", 0},
		{"no number", "Amz-Sdk-Request", "attempt=", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seen := &layerCount{}
			s := &script{steps: []step{status(503)}}
			r := quiet(t, fast, forbear.WithObserver(seen.observer()), forbear.WithBudget(budget.NewTokenBucket(100, 0)))
			rt := httpretry.NewTransport(s, r)
			for range 2 {
				req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
				req.Header.Set(tc.header, tc.value)
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			sends, reports := 8, 0
			if tc.attempt > 0 {
				sends, reports = 2, 1
			}
			if len(s.requests()) != sends || seen.reports != reports || seen.sends != tc.attempt || seen.above != (reports > 0) {
				t.Errorf("%d requests and %+v, want %d requests and %d report of attempt %d",
					len(s.requests()), *seen, sends, reports, tc.attempt)
			}
			if got := edge.LayeredSends(r); (got > 0) != (reports > 0) {
				t.Errorf("%d sends counted", got)
			}
		})
	}
}

func (o *layerCount) observer() *forbear.Observer {
	return &forbear.Observer{LayeredRetry: o.LayeredRetry}
}
