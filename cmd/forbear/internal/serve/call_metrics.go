package serve

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear/gateway"
)

// callMetrics count the calls of each route as their callers see them: a call that was
// retried twice is one call. They are registered with the first gateway and stay.
type callMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec

	of sync.Map // callSeries by callKey: a look at a vector costs more than a call's other metrics
}

// callKey names the series of a route. Statuses are those that were sent, of which there
// are few.
type callKey struct {
	route, dependency string
	status            int
}

type callSeries struct {
	requests prometheus.Counter
	duration prometheus.Observer
}

// callBuckets reach from a local service to the end of the default total.
var callBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newCallMetrics(registry *prometheus.Registry) *callMetrics {
	m := &callMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_requests_total", Help: "Calls through the gateway, by the caller's status; 0 if the caller had left.",
		}, []string{"route", "dependency", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gateway_request_duration_seconds", Help: "Duration of calls through the gateway, waits and bodies included.", Buckets: callBuckets,
		}, []string{"route", "dependency"}),
	}
	registry.MustRegister(m.requests, m.duration)
	return m
}

// observe counts a call. A call that matches no route has an empty route: paths that callers
// make up must not become labels. The exemplar of a bucket leads to the trace of a slow call.
func (m *callMetrics) observe(ctx context.Context, c *gateway.Record) {
	key := callKey{c.Route, c.Dependency, c.Status}
	found, ok := m.of.Load(key)
	if !ok {
		found, _ = m.of.LoadOrStore(key, callSeries{
			m.requests.WithLabelValues(c.Route, c.Dependency, strconv.Itoa(c.Status)),
			m.duration.WithLabelValues(c.Route, c.Dependency),
		})
	}
	s := found.(callSeries)
	s.requests.Inc()
	seconds := c.Duration.Seconds()
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		s.duration.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	s.duration.Observe(seconds)
}

// calls returns an observer of the gateway's calls, which logs a share of them, and all that
// failed unless the share is 0: failures are what the log is read for.
func (w *watch) calls(share float64) func(context.Context, *gateway.Record) {
	if w.metrics == nil && share == 0 {
		return nil
	}
	return func(ctx context.Context, c *gateway.Record) {
		if w.callMetrics != nil {
			w.callMetrics.observe(ctx, c)
		}
		failed := c.Broken || c.Status == 0 || c.Status >= http.StatusInternalServerError
		if share > 0 && (failed || share >= 1 || rand.Float64() < share) {
			w.log.LogAttrs(context.Background(), slog.LevelInfo, "call", c.Attrs()...)
		}
	}
}
