package serve

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/promretry"
)

// watch observes what serve does: by the log, the metrics, the counts behind the admin
// endpoint, and the export to a collector. They observe calls and deliveries alike, so that
// an operator finds both in one place. None of them sees a body, a query or a credential
//
type watch struct {
	log       *slog.Logger
	sampler   *forbear.LogSampler  // one for all Retryers: the bound is the process's
	stats     *gateway.Stats       // behind /admin/status and forbear top
	metrics   *promretry.Metrics   // nil when the policy file switches them off
	registry  *prometheus.Registry // nil without them
	telemetry *telemetry           // nil unless the environment asks for it

	callMetrics *callMetrics // nil without metrics
}

// newWatch makes the observers of the named service. metrics is the policy
// file's word: without it there is no /metrics, and the admin endpoint keeps the
// counts that it needs itself.
func newWatch(ctx context.Context, log *slog.Logger, service string, metrics bool) (*watch, error) {
	w := &watch{log: log, sampler: &forbear.LogSampler{}, stats: gateway.NewStats(service)}
	if metrics {
		w.metrics = promretry.New(promretry.WithService(service))
		w.registry = prometheus.NewRegistry()
		w.callMetrics = newCallMetrics(w.registry)
		w.registry.MustRegister(w.metrics, endpointGauges{service, w.stats.Endpoints}, collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	t, err := newTelemetry(ctx, log, service)
	w.telemetry = t
	return w, err
}

// followFile shows whether the policy file at path, if there is one, is in charge.
func (w *watch) followFile(path string, stale *atomic.Bool) {
	if w.registry == nil || path == "" {
		return
	}
	w.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "policy_file_in_charge", Help: "Whether the policy file is in charge (1), or the policy before it, since the file is refused, gone or cannot be read (0).",
	}, func() float64 {
		if stale.Load() {
			return 0
		}
		return 1
	}))
}

// options returns the observers that each Retryer is built with. Each Retryer gets
// the same ones, so figures add up across dependencies.
func (w *watch) options() []forbear.Option {
	// The first observer replaces the library's own log, which has no sampler: a
	// gateway in an outage would write a line for each refusal.
	opts := []forbear.Option{
		forbear.WithObserver(forbear.LogObserver(w.log, w.sampler)),
		forbear.WithObserver(w.stats.Observer()),
	}
	if w.metrics != nil {
		opts = append(opts, forbear.WithObserver(w.metrics.Observer()))
	}
	return append(opts, w.telemetry.options()...)
}

// inbound counts the requests of callers, for the multiplier of outgoing over
// incoming. Probes of the gateway's own health are not counted: they come at a
// steady pace, and would hide a storm on a quiet gateway.
func (w *watch) inbound(next http.Handler) http.Handler {
	counted := w.stats.CountIncoming(next)
	if w.metrics != nil {
		counted = w.metrics.CountIncoming(counted)
	}
	counted = w.telemetry.inbound(counted)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/health/") {
			next.ServeHTTP(rw, r)
			return
		}
		counted.ServeHTTP(rw, r)
	})
}

// page serves GET /metrics; nil where the policy file switches metrics off. A nil
// handler means that the path is not served at all.
func (w *watch) page() http.Handler {
	if w.registry == nil {
		return nil
	}
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelWarn), EnableOpenMetrics: true,
	})
}

// flushEvery is how often the log says what the sampler has left out of it. It
// bounds how late a burst of failures shows in the log.
const flushEvery = 10 * time.Second

// flush logs the count of lines left out, until ctx ends. The sampler itself
// writes it only with the next line that it lets through, which after a storm
// may be a day away.
func (w *watch) flush(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.sampler.Flush(w.log)
			return
		case <-tick.C:
			w.sampler.Flush(w.log)
		}
	}
}

// close sends what is left to the collector. The exporter's own error is not
// logged: it may hold the collector's URL and headers.
func (w *watch) close(ctx context.Context) {
	if err := w.telemetry.shutdown(ctx); err != nil {
		w.log.Warn("telemetry was not exported in full")
	}
}

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
			Name: "gateway_requests_total", Help: "Calls through the gateway, by the status that the caller got; 0 for one that had gone.",
		}, []string{"route", "dependency", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gateway_request_duration_seconds", Help: "Time of calls through the gateway, waits and bodies included.", Buckets: callBuckets,
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

// endpointGauges are the addresses of the dependencies that have several, for
// Prometheus. They are read when a scrape asks: an address is left out by the calls
// that failed there.
type endpointGauges struct {
	service  string
	statuses func() map[string][]upstream.EndpointStatus
}

var (
	endpointsAll = prometheus.NewDesc("upstream_endpoints",
		"Addresses of a dependency that the gateway connects to.", []string{"service", "dependency"}, nil)
	endpointsOut = prometheus.NewDesc("upstream_endpoints_left_out",
		"Those of them that are left out for a while, because they fail and others do not.", []string{"service", "dependency"}, nil)
)

// Describe implements [prometheus.Collector].
func (g endpointGauges) Describe(to chan<- *prometheus.Desc) {
	to <- endpointsAll
	to <- endpointsOut
}

// Collect implements [prometheus.Collector].
func (g endpointGauges) Collect(to chan<- prometheus.Metric) {
	for dependency, endpoints := range g.statuses() {
		if len(endpoints) == 0 {
			continue
		}
		out := 0
		for _, e := range endpoints {
			if !e.In {
				out++
			}
		}
		to <- prometheus.MustNewConstMetric(endpointsAll, prometheus.GaugeValue, float64(len(endpoints)), g.service, dependency)
		to <- prometheus.MustNewConstMetric(endpointsOut, prometheus.GaugeValue, float64(out), g.service, dependency)
	}
}
