package promretry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/idempotency"
)

// Idempotency returns what to pass as the Observe of idempotency.Options, for the
// keyed requests of one dependency: a service or a route of it.
func (m *Metrics) Idempotency(dependency string) func(idempotency.Event) {
	record := m.recorder.Keyed(dependency)
	return func(e idempotency.Event) { record(e.Label(), e.Took, e.Waited) }
}

// Consumer returns what to pass as the Observe of consume.Options, for the events
// of one consumer group. The durations of its handlers are in
// retry_attempt_duration_seconds of its Retryer's dependency.
func (m *Metrics) Consumer(group string) func(consume.Event, consume.Decision) {
	record := m.recorder.Consumed(group)
	return func(_ consume.Event, d consume.Decision) { record(d.Label()) }
}

// Stalled has it shown when a consumer of events stands still, or its handlers do not
// return. Consumers of one group are added up.
func (m *Metrics) Stalled(c *consume.Consumer) {
	m.recorder.WatchConsumer(c.Group, func() metric.Stalled { return metric.Stalled(c.Stalled()) })
}

// collectStalled sends what does not move of consumers.
func (m *Metrics) collectStalled(ch chan<- prometheus.Metric) {
	for group, s := range m.recorder.Stalled() {
		for i, g := range metric.StalledGauges {
			ch <- prometheus.MustNewConstMetric(m.stalled[i], prometheus.GaugeValue, g.Read(s), m.recorder.Service(), group)
		}
	}
}

// Keys has the records that wait in a store counted when the metrics are read, at
// most every 15 s and for at most 2 s: those of requests and those of events. While
// the store does not respond, their series are left out.
func (m *Metrics) Keys(store idempotency.Counter) {
	m.recorder.CountKeys(func(ctx context.Context) (requests, events metric.Waiting, err error) {
		c, err := store.Census(ctx)
		return metric.Waiting(c.Requests), metric.Waiting(c.Events), err
	})
}

// collectKeys sends what waits in the stores.
func (m *Metrics) collectKeys(ch chan<- prometheus.Metric, now time.Time) {
	for kind, w := range m.recorder.Keys(now) {
		for i, g := range metric.KeyGauges {
			ch <- prometheus.MustNewConstMetric(m.keys[i], prometheus.GaugeValue, g.Read(w), m.recorder.Service(), kind)
		}
	}
}
