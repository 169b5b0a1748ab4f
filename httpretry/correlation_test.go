package httpretry_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// ids notes the correlation id of each retry.
type ids struct{ seen []string }

func (i *ids) RetryScheduled(_ context.Context, e forbear.RetryScheduled) {
	i.seen = append(i.seen, e.CorrelationID)
}

type unavailable struct{}

func (unavailable) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: req}, nil
}

// The log of retries names the id of the context, of the trace, or of the
// request's headers, in that order.
func TestCorrelationOfRetries(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, tt := range []struct {
		name   string
		ctx    string
		hook   string
		header map[string]string
		want   string
	}{
		{"context", "c", "h", map[string]string{"X-Correlation-ID": "x"}, "c"},
		{"trace by hook", "", "h", map[string]string{"X-Correlation-ID": "x"}, "h"},
		{"trace by header", "", "", map[string]string{"traceparent": "00-" + trace + "-00f067aa0ba902b7-01", "X-Correlation-ID": "x"}, trace},
		{"bad trace", "", "", map[string]string{"traceparent": "00-" + trace[:31] + "G-00f067aa0ba902b7-01", "X-Correlation-ID": "x"}, "x"},
		{"no trace", "", "", map[string]string{"traceparent": "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "X-Request-ID": "y"}, "y"},
		{"correlation before request", "", "", map[string]string{"X-Correlation-ID": "x", "X-Request-ID": "y"}, "x"},
		{"made", "", "", map[string]string{"X-Correlation-ID": "a\nb"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen ids
				opts := []forbear.Option{forbear.WithObserver(seen.observer())}
				if tt.hook != "" {
					opts = append(opts, forbear.WithCorrelation(func(context.Context) string { return tt.hook }))
				}
				r, err := forbear.New("payments", forbear.Policy{MaxRetries: 1}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if tt.ctx != "" {
					ctx = forbear.WithCorrelationID(ctx, tt.ctx)
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://payments.test/", nil)
				if err != nil {
					t.Fatal(err)
				}
				for k, v := range tt.header {
					req.Header.Set(k, v)
				}
				resp, err := httpretry.NewTransport(unavailable{}, r).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if len(seen.seen) != 1 || tt.want != "" && seen.seen[0] != tt.want || tt.want == "" && len(seen.seen[0]) != 32 {
					t.Errorf("got %q, want %q", seen.seen, tt.want)
				}
			})
		})
	}
}

func (o *ids) observer() *forbear.Observer {
	return &forbear.Observer{RetryScheduled: o.RetryScheduled}
}
