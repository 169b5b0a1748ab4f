package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/promretry"
)

// watch is everything that looks at what serve does: the log, the metrics, the
// counts behind the admin endpoint, and the export to a collector.
type watch struct {
	log       *slog.Logger
	sampler   *forbear.LogSampler
	stats     *gateway.Stats
	metrics   *promretry.Metrics // nil when the policy file switches them off
	registry  *prometheus.Registry
	telemetry *telemetry // nil unless the environment asks for it
}

// newLogger returns the log of a command, as text or JSON.
func newLogger(w io.Writer, format string) (*slog.Logger, bool) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), true
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), true
	default:
		return nil, false
	}
}

// newWatch makes the observers of the named service.
func newWatch(ctx context.Context, log *slog.Logger, service string, metrics bool) (*watch, error) {
	w := &watch{log: log, sampler: &forbear.LogSampler{}, stats: gateway.NewStats(service)}
	if metrics {
		w.metrics = promretry.New(promretry.WithService(service))
		w.registry = prometheus.NewRegistry()
		w.registry.MustRegister(w.metrics, collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	t, err := newTelemetry(ctx, log, service)
	w.telemetry = t
	return w, err
}

// options returns what the Retryers are built with.
func (w *watch) options() []forbear.Option {
	opts := []forbear.Option{
		forbear.WithObserver(forbear.LogObserver{Logger: w.log, Sampler: w.sampler}),
		forbear.WithObserver(w.stats),
	}
	if w.metrics != nil {
		opts = append(opts, forbear.WithObserver(w.metrics))
	}
	return append(opts, w.telemetry.options()...)
}

// inbound counts the requests of callers; those about the gateway's own health
// are none.
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

// page answers GET /metrics.
func (w *watch) page() http.Handler {
	if w.registry == nil {
		return nil
	}
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelWarn), EnableOpenMetrics: true,
	})
}

// flushEvery is how often the log tells what it has left out.
const flushEvery = 10 * time.Second

// flush keeps the count of lines left out from waiting for the next storm,
// until ctx ends.
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

// close sends what is left to the collector.
func (w *watch) close(ctx context.Context) {
	if err := w.telemetry.shutdown(ctx); err != nil {
		w.log.Warn("telemetry was not exported in full")
	}
}
