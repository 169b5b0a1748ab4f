package promretry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/edge/metric"
)

// sink is the vectors of Prometheus, by their place in the table of metrics. It
// formats no label itself: the table has their names, the recorder their values.
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

// counters makes a series of a CounterVec. WithLabelValues panics on a wrong number
// of labels, which only a mistake in the table can bring about.
type counters struct{ *prometheus.CounterVec }

func (v counters) series(labels []string) metric.Series {
	return counter{v.WithLabelValues(labels...)}
}

// counter adapts a series. The context goes unused: exemplars would need a trace.
type counter struct{ prometheus.Counter }

func (c counter) Record(_ context.Context, v float64) { c.Add(v) }

// histograms is like counters, histogram like counter.
type histograms struct{ *prometheus.HistogramVec }

func (v histograms) series(labels []string) metric.Series {
	return histogram{v.WithLabelValues(labels...)}
}

type histogram struct{ prometheus.Observer }

func (h histogram) Record(_ context.Context, v float64) { h.Observe(v) }
