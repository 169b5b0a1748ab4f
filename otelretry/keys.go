package otelretry

import (
	"context"
	"errors"
	"time"

	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/metric"
)

// Idempotency returns what to pass as the Observe of idempotency.Options, for the
// keyed requests of one dependency: a service or a route of it.
func (o *Observer) Idempotency(dependency string) func(idempotency.Event) {
	record := o.recorder.Keyed(dependency)
	return func(e idempotency.Event) { record(e.Label(), e.Took, e.Waited) }
}

// Consumer returns what to pass as the Observe of consume.Options, for the events
// of one consumer group. The durations of its handlers are in
// retry_attempt_duration_seconds of its Retryer's dependency.
func (o *Observer) Consumer(group string) func(consume.Event, consume.Decision) {
	record := o.recorder.Consumed(group)
	return func(_ consume.Event, d consume.Decision) { record(d.Label()) }
}

// Keys has the records that wait in a store counted at each collection, at most
// every 15 s and for at most 2 s: those of requests and those of events. While the
// store does not respond, nothing is observed.
func (o *Observer) Keys(store idempotency.Counter) {
	o.recorder.CountKeys(func(ctx context.Context) (requests, events metric.Waiting, err error) {
		c, err := store.Census(ctx)
		return metric.Waiting(c.Requests), metric.Waiting(c.Events), err
	})
}

// registerKeyGauges has what waits in the stores read at each collection.
func registerKeyGauges(m otelmetric.Meter, r *metric.Recorder) error {
	instruments := make([]otelmetric.Observable, len(metric.KeyGauges))
	errs := make([]error, len(metric.KeyGauges))
	for i, g := range metric.KeyGauges {
		instruments[i], errs[i] = newGauge(m, g.Metric)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := m.RegisterCallback(func(_ context.Context, to otelmetric.Observer) error {
		for kind, w := range r.Keys(time.Now()) {
			for i, g := range metric.KeyGauges {
				observe(to, instruments[i], g.Read(w), attributes(g.Labels, []string{r.Service(), kind}))
			}
		}
		return nil
	}, instruments...)
	return err
}
