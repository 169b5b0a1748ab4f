// Package metric holds what forbear measures, once: the table of the metrics,
// and the [Recorder] that turns events into measurements for a [Sink].
// Prometheus (promretry), OpenTelemetry (otelretry) and the admin page's counts
// (gateway.Stats) are its sinks. A metric that is added here is in all of them,
// under one name and with one help text.
//
// It does not register, export or show anything: that is the sinks' part.
package metric

// A Kind says what a metric does with a measurement.
type Kind int

const (
	// KindCounter adds it up, in whole numbers.
	KindCounter Kind = iota
	// KindHistogram counts it in a bucket.
	KindHistogram
	// KindGauge shows the latest.
	KindGauge
)

// Metric is what a metric is called and how its series differ. The names, the
// labels and the buckets are a promise to dashboards and alerts (R-10,
// INTG-STD-033): a golden scrape holds them.
type Metric struct {
	Name, Help string
	Kind       Kind
	Labels     []string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// Unit is that of OpenTelemetry: "s", "1" for a ratio, or none. Prometheus
	// has it in the name.
	Unit string
	// Whole says that the values of a gauge are whole numbers, for which
	// OpenTelemetry has a type of their own.
	Whole bool
}

// The labels whose values come from outside, by which [label.Set] bounds them.
const (
	labelDependency = "dependency"
	labelErrorType  = "error_type"
	labelQueue      = "queue"
	labelGroup      = "group"
)

// labelService is the label that all metrics but one have; there is one value
// for each process.
const labelService = "service"

// An ID is the place of a metric in the [Table].
type ID int

// The metrics that events move.
const (
	Initial ID = iota
	Retries
	Exhausted
	Backoff
	Attempts
	Latency
	Recovered
	Failed
	Suppressed
	OverBudget
	Paced
	TimeBudget
	Certificates
	Refreshes
	Dead
	Incoming
	BreakerCalls
	BreakerMoves
	BreakerOpened
	Rejections
	KeyRequests
	KeyRuns
	KeyWaits
	Events
)

// Table is the metrics that events move. Those that are read off a Retryer
// instead are the [Gauges].
var Table = [...]Metric{
	Initial: counter("retry_initial_requests_total",
		"First attempts, before any retry."),
	Retries: counter("retry_attempts_total",
		"Retries by attempt number; the first retry is attempt 2.", "attempt_number"),
	Exhausted: counter("retry_exhausted_total",
		"Calls that used up their retries or their time, refusals of the budget excluded."),
	Backoff: histogram("retry_backoff_duration_seconds", "s",
		"The wait before each retry.", []float64{.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60}),
	Attempts: histogram("retry_attempts_per_call", "",
		"Attempts per call, the first included.", []float64{1, 2, 3, 4, 5, 6, 8, 11}),
	Latency: histogram("retry_attempt_duration_seconds", "s",
		"Duration of attempts, by first attempt and retry.", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "attempt"),
	Recovered: counter("retry_success_after_retry_total",
		"Calls that succeeded after a retry, by the earlier error.", labelErrorType),
	Failed: counter("retry_failed_calls_total",
		"Calls that failed after at least one attempt, by last error and reason.", labelErrorType, "reason"),
	Suppressed: counter("retry_suppressed_total",
		"Calls and retries that were not sent, by reason.", "reason"),
	OverBudget: counter("retry_budget_exhausted_total",
		"Retries that the budget refused."),
	Paced: counter("retry_paced_total",
		"Retries of durable work that successes have earned beyond the budget."),
	TimeBudget: counter("timeout_budget_exhausted_total",
		"Attempts that were not started because too little time was left."),
	Certificates: counter("tls_certificate_errors_total",
		"Calls that ended because the peer's certificate was refused; never retried."),
	Refreshes: counter("retry_credential_refreshes_total",
		"Credentials refreshed for a retry, by outcome: ok or failed.", "outcome"),
	// The two that do not belong to a dependency.
	Dead: {
		Name: "dlq_messages_total", Labels: []string{labelQueue},
		Help: "Messages put into a dead-letter queue.",
	},
	Incoming: {
		Name: "retry_incoming_requests_total", Labels: []string{labelService},
		Help: "Requests received by a handler that is wrapped in Inbound.",
	},
	BreakerCalls: counter("circuit_breaker_calls_total",
		"Attempts in the circuit breaker, by outcome: success, slow, failure, ignored, not_permitted.", "outcome"),
	BreakerMoves: counter("circuit_breaker_state_transitions_total",
		"Transitions of the circuit breaker.", "from", "to"),
	BreakerOpened: counter("circuit_breaker_opened_total",
		"Openings of the circuit breaker, by cause: failures, slow_calls, budget, probe_failed, operator, other_process.", "cause"),
	Rejections: counter("bulkhead_rejections_total",
		"Calls that were refused because too many were running."),
	KeyRequests: counter("idempotency_requests_total",
		"Requests with idempotency keys, by result.", "result"),
	KeyRuns: histogram("idempotency_run_duration_seconds", "s",
		"Duration of the handler of a keyed request.", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}),
	KeyWaits: histogram("idempotency_wait_duration_seconds", "s",
		"Time that a duplicate waited for the first request.", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}),
	// By consumer group, of which one may work on several dependencies.
	Events: {
		Name: "consume_events_total", Labels: []string{labelService, labelGroup, "outcome"},
		Help: "Events that a consumer handled, by outcome.",
	},
}

// counter and histogram are rows of the table: metrics of a dependency, with
// more labels after those that all have.
func counter(name, help string, more ...string) Metric {
	return Metric{Name: name, Help: help, Labels: perDependency(more)}
}

func histogram(name, unit, help string, buckets []float64, more ...string) Metric {
	return Metric{Name: name, Unit: unit, Help: help, Kind: KindHistogram, Buckets: buckets, Labels: perDependency(more)}
}

func perDependency(more []string) []string {
	return append([]string{labelService, labelDependency}, more...)
}
