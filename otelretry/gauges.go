package otelretry

import (
	"context"
	"errors"
	"time"

	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/internal/metric"
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
	instruments := make([]otelmetric.Observable, len(metric.Gauges))
	errs := make([]error, len(metric.Gauges))
	for i, g := range metric.Gauges {
		instruments[i], errs[i] = newGauge(m, g.Metric)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := m.RegisterCallback(func(_ context.Context, to otelmetric.Observer) error {
		now := time.Now()
		for dependency, retryer := range r.Retryers() {
			for i, g := range metric.Gauges {
				v, ok := g.Read(retryer, now)
				if !ok {
					continue // no breaker, say: a zero would look like a closed one
				}
				observe(to, instruments[i], v, attributes(g.Labels, []string{r.Service(), dependency}))
			}
		}
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
