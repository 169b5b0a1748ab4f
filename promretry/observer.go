package promretry

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/httpretry"
)

// Metrics is an observer for [forbear.WithObserver] and a
// [prometheus.Collector]. One serves all Retryers of a process. It does not
// replace the log of retries. It is safe for concurrent use; make it
// with [New].
type Metrics struct {
	sink     sink
	recorder *metric.Recorder
	gauges   []*prometheus.Desc // in the order of metric.Gauges
	keys     []*prometheus.Desc // in the order of metric.KeyGauges
	stalled  []*prometheus.Desc // in the order of metric.StalledGauges
}

// Option changes what [New] returns.
type Option func(*config)

type config struct{ service string }

// WithService sets the label service; a policy file names it too.
func WithService(name string) Option { return func(c *config) { c.service = name } }

// New returns metrics that are yet to be registered.
func New(opts ...Option) *Metrics {
	var c config
	for _, opt := range opts {
		opt(&c)
	}
	m := &Metrics{sink: newSink()}
	m.recorder = metric.NewRecorder(&m.sink, c.service)
	for _, g := range metric.Gauges {
		m.gauges = append(m.gauges, prometheus.NewDesc(g.Name, g.Help, g.Labels, nil))
	}
	for _, g := range metric.KeyGauges {
		m.keys = append(m.keys, prometheus.NewDesc(g.Name, g.Help, g.Labels, nil))
	}
	for _, g := range metric.StalledGauges {
		m.stalled = append(m.stalled, prometheus.NewDesc(g.Name, g.Help, g.Labels, nil))
	}
	return m
}

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (m *Metrics) Observer() *forbear.Observer { return m.recorder.Observer() }

// Inbound is [httpretry.Inbound] that also counts the requests: outgoing over
// incoming is the multiplier that tells a retry storm from a surge.
func (m *Metrics) Inbound(next http.Handler) http.Handler {
	return m.CountIncoming(httpretry.Inbound(next))
}

// CountIncoming only counts the requests that next receives.
func (m *Metrics) CountIncoming(next http.Handler) http.Handler {
	return m.recorder.CountIncoming(next)
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range m.sink {
		v.Describe(ch)
	}
	for _, d := range slices.Concat(m.gauges, m.keys, m.stalled) {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. It reads the budgets, breakers and
// bulkheads of the Retryers at that moment, and has the stores counted that were
// given to Keys.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, v := range m.sink {
		v.Collect(ch)
	}
	now := time.Now()
	m.collectKeys(ch, now)
	m.collectStalled(ch)
	for dependency, r := range m.recorder.Retryers() {
		for i, g := range metric.Gauges {
			if v, ok := g.Read(r, now); ok {
				// Nothing is kept between scrapes: a value is as old as the scrape.
				kind := prometheus.GaugeValue
				if g.Kind == metric.KindCounter {
					kind = prometheus.CounterValue
				}
				ch <- prometheus.MustNewConstMetric(m.gauges[i], kind, v, m.recorder.Service(), dependency)
			}
		}
	}
}
