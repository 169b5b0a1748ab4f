package promretry_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/promretry"
)

func redirectDefault(w *bytes.Buffer) (restore func()) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(w, nil)))
	return func() { slog.SetDefault(before) }
}

// The success path with metrics: at most two allocations are allowed, and none
// is needed.
func TestSuccessAllocatesNothing(t *testing.T) {
	m := promretry.New()
	r := retryer(t, m, "payments", forbear.Policy{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	op := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _ = r.Do(ctx, op) }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// answer is a RoundTripper that costs next to nothing.
type answer struct{ resp http.Response }

func (a *answer) RoundTrip(*http.Request) (*http.Response, error) { return &a.resp, nil }

func newAnswer() *answer {
	return &answer{http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}}
}

// BenchmarkSuccess is to be read in one run: "forbear" less "bare" is what the
// observer adds, "promhttp" less "roundtrip" what promhttp's instrumentation of
// a client adds (requests, duration and in flight, as its example has them).
func BenchmarkSuccess(b *testing.B) {
	ctx := b.Context()
	op := func(context.Context) error { return nil }
	b.Run("bare", func(b *testing.B) {
		r := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog()))
		b.ReportAllocs()
		for b.Loop() {
			_ = r.Do(ctx, op)
		}
	})
	b.Run("forbear", func(b *testing.B) {
		r := retryer(b, promretry.New(), "payments", forbear.Policy{})
		b.ReportAllocs()
		for b.Loop() {
			_ = r.Do(ctx, op)
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://payments.test/", nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, rt := range map[string]http.RoundTripper{"roundtrip": newAnswer(), "promhttp": instrumented(newAnswer())} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rt.RoundTrip(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	transports := map[string]http.RoundTripper{
		"httpretry bare":    httpretry.NewTransport(newAnswer(), forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog()))),
		"httpretry forbear": httpretry.NewTransport(newAnswer(), retryer(b, promretry.New(), "payments", forbear.Policy{})),
	}
	for name, rt := range transports {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rt.RoundTrip(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func instrumented(next http.RoundTripper) http.RoundTripper {
	inFlight := prometheus.NewGauge(prometheus.GaugeOpts{Name: "in_flight"})
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total"}, []string{"code", "method"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "duration_seconds"}, []string{"code", "method"})
	return promhttp.InstrumentRoundTripperInFlight(inFlight,
		promhttp.InstrumentRoundTripperCounter(requests,
			promhttp.InstrumentRoundTripperDuration(duration, next)))
}
