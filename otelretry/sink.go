package otelretry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/edge/metric"
)

// sink is the instruments of OpenTelemetry, by their place in the table of
// metrics: a metric has one in either list.
type sink struct {
	counters   [len(metric.Table)]otelmetric.Int64Counter
	histograms [len(metric.Table)]otelmetric.Float64Histogram
}

// newSink opens an instrument for each row of the table. All errors are joined:
// an SDK that refuses one name may refuse others.
func newSink(m otelmetric.Meter) (*sink, error) {
	var s sink
	var errs [len(metric.Table)]error
	for id, row := range metric.Table {
		unit, help := otelmetric.WithUnit(row.Unit), otelmetric.WithDescription(row.Help)
		if row.Kind == metric.KindHistogram {
			s.histograms[id], errs[id] = m.Float64Histogram(row.Name, unit, help, otelmetric.WithExplicitBucketBoundaries(row.Buckets...))
		} else {
			s.counters[id], errs[id] = m.Int64Counter(row.Name, unit, help)
		}
	}
	return &s, errors.Join(errs[:]...)
}

// Series implements [metric.Sink]. A counter exists from its first addition on,
// so it begins with one of zero.
func (s *sink) Series(id metric.ID, labels ...string) metric.Series {
	at := attributes(metric.Table[id].Labels, labels)
	if h := s.histograms[id]; h != nil {
		return histogram{h, []otelmetric.RecordOption{at}}
	}
	c := counter{s.counters[id], []otelmetric.AddOption{at}}
	c.Record(context.Background(), 0)
	return c
}

// attributes pairs the names of labels with their values.
func attributes(names, values []string) otelmetric.MeasurementOption {
	kvs := make([]attribute.KeyValue, len(names))
	for i, name := range names {
		kvs[i] = attribute.String(name, values[i])
	}
	return otelmetric.WithAttributeSet(attribute.NewSet(kvs...))
}

// counter and histogram keep their attributes as the slice that the call wants,
// so that a measurement allocates none.
type counter struct {
	otelmetric.Int64Counter
	at []otelmetric.AddOption
}

func (c counter) Record(ctx context.Context, v float64) { c.Add(ctx, int64(v), c.at...) }

type histogram struct {
	in otelmetric.Float64Histogram
	at []otelmetric.RecordOption
}

func (h histogram) Record(ctx context.Context, v float64) { h.in.Record(ctx, v, h.at...) }
