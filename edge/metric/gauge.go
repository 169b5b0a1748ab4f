package metric

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
)

// Gauge is a metric that is read off a Retryer when a sink is asked for it,
// rather than moved by events: a budget refills and a breaker becomes half-open
// by the clock alone. Its labels are the service and the dependency.
type Gauge struct {
	Metric
	// Read returns the value; ok is false where the Retryer has no such thing,
	// as without a breaker.
	Read func(r *forbear.Retryer, now time.Time) (value float64, ok bool)
}

// Gauges are in the order of their names. Breaker, bulkhead and budget are asked
// at the same moment, so that a scrape shows one state.
var Gauges = []Gauge{
	{
		gauge("bulkhead_available_concurrent_calls", "", true, "Calls that the bulkhead could admit now."),
		ofBulkhead((*breaker.Bulkhead).Available),
	},
	{
		gauge("bulkhead_max_concurrent_calls", "", true, "Concurrent calls that the bulkhead allows."),
		ofBulkhead((*breaker.Bulkhead).Limit),
	},
	{
		gauge("circuit_breaker_budget_exhausted", "", true, "Whether the retry budget refused a retry in the last 10 seconds: 1 or 0."),
		ofBreaker(func(b *breaker.Breaker, now time.Time) float64 {
			if b.BudgetSpent(now) {
				return 1
			}
			return 0
		}),
	},
	{
		gauge("circuit_breaker_failure_rate", "", false, "Share of failed attempts in the circuit breaker's window, 0 to 1."),
		ofBreaker((*breaker.Breaker).FailureRate),
	},
	{
		gauge("circuit_breaker_state", "", true, "State of the circuit breaker: 0 closed, 1 open, 2 half-open."),
		ofBreaker(func(b *breaker.Breaker, _ time.Time) float64 { return float64(b.State()) }),
	},
	{
		gauge("health_gate_healthy", "", true, "Whether the health gate allows retries: 1 or 0."),
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			h, ok := edge.Health(r, now)
			if h.Healthy {
				return 1, ok
			}
			return 0, ok
		},
	},
	{
		gauge("health_success_rate", "", false, "Share of good attempts in the health gate's window, 0 to 1."),
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			h, _ := edge.Health(r, now)
			return h.Rate, h.Counted
		},
	},
	{
		gauge("retry_budget_floor_retries_per_second", "", false, "Retries per second that the budget always allows."),
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			// Alerts on the ratio of retries leave this much out: a quiet service
			// may retry more than its share by right.
			b := r.Policy().Budget
			return float64(b.MinRetries) / b.Window.Seconds(), b.Window > 0
		},
	},
	{
		gauge("retry_budget_limit_ratio", "1", false, "Retries that the budget allows per initial request."),
		func(r *forbear.Retryer, _ time.Time) (float64, bool) {
			// The policy's, even where WithBudget has replaced the budget itself:
			// an alert is to show that more is allowed than the policy says.
			return r.Policy().Budget.MaxAmplification() - 1, true
		},
	},
	{
		gauge("retry_budget_utilization_ratio", "1", false, "Used share of the retry budget; 1 is a spent budget."),
		func(r *forbear.Retryer, now time.Time) (float64, bool) {
			l := r.Level(now)
			if l.Used == 0 {
				return 0, true // also for a budget that allows nothing yet: 0/0 is not spent
			}
			return l.Utilization(), true
		},
	},
	{
		// A counter all the same: the Retryer keeps it, because only the first such
		// send is an event.
		counter("retry_layered_sends_total", "Additional sends by a lower layer that retries by itself."),
		func(r *forbear.Retryer, _ time.Time) (float64, bool) { return float64(edge.LayeredSends(r)), true },
	},
}

// gauge is the row of a gauge; whole is [Metric.Whole].
func gauge(name, unit string, whole bool, help string) Metric {
	return Metric{Name: name, Unit: unit, Whole: whole, Help: help, Kind: KindGauge, Labels: perDependency(nil)}
}

// ofBreaker reads the circuit breaker of a Retryer; without one there is no series.
func ofBreaker(read func(*breaker.Breaker, time.Time) float64) func(*forbear.Retryer, time.Time) (float64, bool) {
	return func(r *forbear.Retryer, now time.Time) (float64, bool) {
		if b := r.Breaker(); b != nil {
			return read(b, now), true
		}
		return 0, false
	}
}

// ofBulkhead reads the bulkhead of a Retryer; without one there is no series.
func ofBulkhead(read func(*breaker.Bulkhead) int) func(*forbear.Retryer, time.Time) (float64, bool) {
	return func(r *forbear.Retryer, _ time.Time) (float64, bool) {
		if b := r.Bulkhead(); b != nil {
			return float64(read(b)), true
		}
		return 0, false
	}
}
