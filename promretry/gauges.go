package promretry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/gate"
)

// gauge is a metric that is read off a Retryer when it is asked for.
type gauge struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// read returns the value; ok is false where the Retryer has no such thing.
	read func(r *forbear.Retryer, now time.Time) (value float64, ok bool)
}

func newGauge(name, help string, kind prometheus.ValueType, read func(*forbear.Retryer, time.Time) (float64, bool)) gauge {
	return gauge{prometheus.NewDesc(name, help, perDependency, nil), kind, read}
}

// gauges are in the order of their names.
var gauges = []gauge{
	newGauge("bulkhead_available_concurrent_calls", "Calls that could enter the bulkhead now.", prometheus.GaugeValue,
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			if b := r.Bulkhead(); b != nil {
				return float64(b.Available()), true
			}
			return 0, false
		}),
	newGauge("bulkhead_max_concurrent_calls", "Calls that may be under way at once.", prometheus.GaugeValue,
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			if b := r.Bulkhead(); b != nil {
				return float64(b.Limit()), true
			}
			return 0, false
		}),
	newGauge("circuit_breaker_budget_exhausted", "Whether the retry budget has refused a retry within the last ten seconds: 1 or 0.", prometheus.GaugeValue,
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			b := r.Breaker()
			if b != nil && b.BudgetSpent(now) {
				return 1, true
			}
			return 0, b != nil
		}),
	newGauge("circuit_breaker_failure_rate", "Share of failed attempts among the latest that the circuit breaker counts, 0 to 1.", prometheus.GaugeValue,
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			if b := r.Breaker(); b != nil {
				return b.FailureRate(now), true
			}
			return 0, false
		}),
	newGauge("circuit_breaker_state", "Where the circuit breaker stands: 0 closed, 1 open, 2 half-open.", prometheus.GaugeValue,
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			if b := r.Breaker(); b != nil {
				return float64(b.State()), true
			}
			return 0, false
		}),
	newGauge("health_gate_healthy", "Whether the health gate lets retries go on: 1 or 0.", prometheus.GaugeValue,
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			g, ok := gate.Of(r, now)
			if g.Healthy {
				return 1, ok
			}
			return 0, ok
		}),
	newGauge("health_success_rate", "Share of good attempts in the window of the health gate, 0 to 1.", prometheus.GaugeValue,
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			g, _ := gate.Of(r, now)
			return g.Rate, g.Counted
		}),
	newGauge("retry_budget_floor_retries_per_second", "Retries per second that the budget allows whatever the number of requests.", prometheus.GaugeValue,
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			b := r.Policy().Budget
			return float64(b.MinRetries) / b.Window.Seconds(), b.Window > 0
		}),
	newGauge("retry_budget_limit_ratio", "Retries that the budget allows for each initial request.", prometheus.GaugeValue,
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			return r.Policy().Budget.MaxAmplification() - 1, true
		}),
	newGauge("retry_budget_utilization_ratio", "Retries in the budget's window over the retries allowed; 1 is a spent budget.", prometheus.GaugeValue,
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			l := r.Level(now)
			if l.Used == 0 {
				return 0, true // a budget that allows nothing yet, to nobody
			}
			return l.Utilization(), true
		}),
	newGauge("retry_layered_sends_total", "Sends that a layer below has added to forbear's attempts by itself.", prometheus.CounterValue,
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			return float64(r.LayeredSends()), true
		}),
}
