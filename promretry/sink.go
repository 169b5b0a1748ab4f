package promretry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/internal/metric"
)

// sink is the vectors of Prometheus, by their place in the table of metrics.
type sink [len(metric.Table)]vector

// vector is a CounterVec or a HistogramVec: the two have no common method that
// returns a series.
type vector interface {
	prometheus.Collector
	series(labels []string) metric.Series
}

func newSink() (s sink) {
	for id, m := range metric.Table {
		if m.Kind == metric.KindHistogram {
			s[id] = histograms{prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels)}
		} else {
			s[id] = counters{prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)}
		}
	}
	return s
}

// Series implements [metric.Sink]. A Prometheus series begins at zero by being
// looked up.
func (s *sink) Series(id metric.ID, labels ...string) metric.Series { return s[id].series(labels) }

type counters struct{ *prometheus.CounterVec }

func (v counters) series(labels []string) metric.Series {
	return counter{v.WithLabelValues(labels...)}
}

type counter struct{ prometheus.Counter }

func (c counter) Record(_ context.Context, v float64) { c.Add(v) }

type histograms struct{ *prometheus.HistogramVec }

func (v histograms) series(labels []string) metric.Series {
	return histogram{v.WithLabelValues(labels...)}
}

type histogram struct{ prometheus.Observer }

func (h histogram) Record(_ context.Context, v float64) { h.Observe(v) }
