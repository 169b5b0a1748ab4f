package serve

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/httpretry"
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
		Name: "policy_file_in_charge", Help: "1 if the policy file is in charge; 0 if an earlier policy is, because the file is faulty or unreadable.",
	}, func() float64 {
		if stale.Load() {
			return 0
		}
		return 1
	}))
}

// followBodies shows how much memory request bodies take.
func (w *watch) followBodies(m *httpretry.BodyMemory) {
	if w.registry == nil {
		return
	}
	of := func(bytes func() int64) func() float64 { return func() float64 { return float64(bytes()) } }
	w.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gateway_body_memory_bytes", Help: "Memory of request bodies that are kept for a retry, beyond the first 64 KiB of each.",
		}, of(m.Used)),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gateway_body_memory_limit_bytes", Help: "Limit of gateway_body_memory_bytes; a body that does not fit is sent once.",
		}, of(m.Limit)),
	)
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
// may be a day away. The admin endpoint's hour moves on with it.
func (w *watch) flush(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.sampler.Flush(w.log)
			return
		case now := <-tick.C:
			w.sampler.Flush(w.log)
			w.stats.Sample(now)
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
