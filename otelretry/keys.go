package otelretry

import (
	"context"
	"time"

	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/idempotency"
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

// Stalled has it shown when a consumer of events stands still, or its handlers do not
// return. Consumers of one group are added up.
func (o *Observer) Stalled(c *consume.Consumer) {
	o.recorder.WatchConsumer(c.Group, func() metric.Stalled { return metric.Stalled(c.Stalled()) })
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

// registerKeyGauges has what waits in the stores read at each collection, and
// registerStalledGauges what does not move of consumers.
func registerKeyGauges(m otelmetric.Meter, r *metric.Recorder) error {
	return registerRead(m, metric.KeyGauges, func(g metric.KeyGauge) metric.Metric { return g.Metric }, func(send func(int, float64, ...string)) {
		for kind, w := range r.Keys(time.Now()) {
			for i, g := range metric.KeyGauges {
				send(i, g.Read(w), r.Service(), kind)
			}
		}
	})
}

func registerStalledGauges(m otelmetric.Meter, r *metric.Recorder) error {
	return registerRead(m, metric.StalledGauges, func(g metric.StalledGauge) metric.Metric { return g.Metric }, func(send func(int, float64, ...string)) {
		for group, s := range r.Stalled() {
			for i, g := range metric.StalledGauges {
				send(i, g.Read(s), r.Service(), group)
			}
		}
	})
}
