package otelretry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/internal/gate"
)

// gauges registers what is read off the Retryers when it is asked for.
func (o *Observer) gauges(m metric.Meter) error {
	utilization, err1 := m.Float64ObservableGauge("retry_budget_utilization_ratio",
		metric.WithUnit("1"), metric.WithDescription("Retries in the budget's window over the retries allowed; 1 is a spent budget."))
	state, err2 := m.Int64ObservableGauge("circuit_breaker_state",
		metric.WithDescription("Where the circuit breaker stands: 0 closed, 1 open, 2 half-open."))
	spent, err9 := m.Int64ObservableGauge("circuit_breaker_budget_exhausted",
		metric.WithDescription("Whether the retry budget has refused a retry within the last ten seconds: 1 or 0."))
	rate, err3 := m.Float64ObservableGauge("circuit_breaker_failure_rate",
		metric.WithDescription("Share of failed attempts among the latest that the circuit breaker counts, 0 to 1."))
	available, err4 := m.Int64ObservableGauge("bulkhead_available_concurrent_calls",
		metric.WithDescription("Calls that could enter the bulkhead now."))
	most, err5 := m.Int64ObservableGauge("bulkhead_max_concurrent_calls",
		metric.WithDescription("Calls that may be under way at once."))
	limit, err6 := m.Float64ObservableGauge("retry_budget_limit_ratio",
		metric.WithUnit("1"), metric.WithDescription("Retries that the budget allows for each initial request."))
	floor, err8 := m.Float64ObservableGauge("retry_budget_floor_retries_per_second",
		metric.WithDescription("Retries per second that the budget allows whatever the number of requests."))
	healthy, err10 := m.Int64ObservableGauge("health_gate_healthy",
		metric.WithDescription("Whether the health gate lets retries go on: 1 or 0."))
	good, err11 := m.Float64ObservableGauge("health_success_rate",
		metric.WithDescription("Share of good attempts in the window of the health gate, 0 to 1."))
	layered, err7 := m.Int64ObservableCounter("retry_layered_sends_total",
		metric.WithDescription("Sends that a layer below has added to forbear's attempts by itself."))
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11); err != nil {
		return err
	}
	_, err := m.RegisterCallback(func(_ context.Context, obs metric.Observer) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		now := time.Now()
		for _, r := range o.retryers {
			at := o.of(r.Dependency())
			if l := r.Level(now); l.Used == 0 {
				obs.ObserveFloat64(utilization, 0, at)
			} else {
				obs.ObserveFloat64(utilization, l.Utilization(), at)
			}
			obs.ObserveFloat64(limit, r.Policy().Budget.MaxAmplification()-1, at)
			if p := r.Policy().Budget; p.Window > 0 {
				obs.ObserveFloat64(floor, float64(p.MinRetries)/p.Window.Seconds(), at)
			}
			obs.ObserveInt64(layered, r.LayeredSends(), at)
			if b := r.Breaker(); b != nil {
				obs.ObserveInt64(state, int64(b.State()), at)
				exhausted := int64(0)
				if b.BudgetSpent(now) {
					exhausted = 1
				}
				obs.ObserveInt64(spent, exhausted, at)
				obs.ObserveFloat64(rate, b.FailureRate(now), at)
			}
			if g, ok := gate.Of(r, now); ok {
				open := int64(0)
				if g.Healthy {
					open = 1
				}
				obs.ObserveInt64(healthy, open, at)
				if g.Counted {
					obs.ObserveFloat64(good, g.Rate, at)
				}
			}
			if b := r.Bulkhead(); b != nil {
				obs.ObserveInt64(available, int64(b.Available()), at)
				obs.ObserveInt64(most, int64(b.Limit()), at)
			}
		}
		return nil
	}, utilization, state, spent, rate, available, most, limit, floor, healthy, good, layered)
	return err
}
