package otelretry

import (
	"context"
	"errors"
	"time"

	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/edge/metric"
)

// newGauge makes the instrument of a metric that is read off the Retryers. The
// type of its values is part of what a collector stores, and never changes.
func newGauge(m otelmetric.Meter, row metric.Metric) (otelmetric.Observable, error) {
	unit, help := otelmetric.WithUnit(row.Unit), otelmetric.WithDescription(row.Help)
	switch {
	case row.Kind == metric.KindCounter:
		return m.Int64ObservableCounter(row.Name, unit, help)
	case row.Whole:
		return m.Int64ObservableGauge(row.Name, unit, help)
	default:
		return m.Float64ObservableGauge(row.Name, unit, help)
	}
}

// registerGauges has the Retryers of r read at each collection. One callback reads
// all, so that the values of a collection are of one moment. It lives as long as
// the meter does: an Observer has no end.
func registerGauges(m otelmetric.Meter, r *metric.Recorder) error {
	return registerRead(m, metric.Gauges, func(g metric.Gauge) metric.Metric { return g.Metric }, func(send func(int, float64, ...string)) {
		now := time.Now()
		for dependency, retryer := range r.Retryers() {
			for i, g := range metric.Gauges {
				if v, ok := g.Read(retryer, now); ok { // no breaker, say: a zero would look like a closed one
					send(i, v, r.Service(), dependency)
				}
			}
		}
	})
}

// registerRead makes the instruments of a list, and sends what read sends of the
// instrument at a place in it, with the values of its labels.
func registerRead[G any](m otelmetric.Meter, list []G, of func(G) metric.Metric, read func(send func(at int, v float64, labels ...string))) error {
	instruments := make([]otelmetric.Observable, len(list))
	errs := make([]error, len(list))
	for i, g := range list {
		instruments[i], errs[i] = newGauge(m, of(g))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := m.RegisterCallback(func(_ context.Context, to otelmetric.Observer) error {
		read(func(at int, v float64, labels ...string) {
			observe(to, instruments[at], v, attributes(of(list[at]).Labels, labels))
		})
		return nil
	}, instruments...)
	return err
}

// observe records the value of a gauge in the type of its instrument.
func observe(to otelmetric.Observer, in otelmetric.Observable, v float64, at otelmetric.MeasurementOption) {
	switch in := in.(type) {
	case otelmetric.Int64Observable:
		to.ObserveInt64(in, int64(v), at)
	case otelmetric.Float64Observable:
		to.ObserveFloat64(in, v, at)
	}
}
