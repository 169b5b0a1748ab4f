package promretry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Names of labels.
const (
	labelService    = "service"
	labelDependency = "dependency"
	labelAttempt    = "attempt_number"
	labelErrorType  = "error_type"
	labelReason     = "reason"
	labelOutcome    = "outcome"
	labelCause      = "cause"
)

var perDependency = []string{labelService, labelDependency}

// vectors are the metrics that events move. Their names are part of the
// package's promise: a golden scrape holds them.
type vectors struct {
	initial   *prometheus.CounterVec
	retries   *prometheus.CounterVec
	exhausted *prometheus.CounterVec
	backoff   *prometheus.HistogramVec
	attempts  *prometheus.HistogramVec
	latency   *prometheus.HistogramVec

	recovered  *prometheus.CounterVec
	failed     *prometheus.CounterVec
	suppressed *prometheus.CounterVec
	overBudget *prometheus.CounterVec
	paced      *prometheus.CounterVec

	timeBudget   *prometheus.CounterVec
	certificates *prometheus.CounterVec
	refreshes    *prometheus.CounterVec
	dead         *prometheus.CounterVec
	incoming     *prometheus.CounterVec

	breakerCalls  *prometheus.CounterVec
	breakerMoves  *prometheus.CounterVec
	breakerOpened *prometheus.CounterVec
	rejections    *prometheus.CounterVec
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// with returns the labels of a dependency and more.
func with(more ...string) []string { return append(perDependency[:2:2], more...) }

func newVectors() vectors {
	return vectors{
		initial: counter("retry_initial_requests_total",
			"First attempts: the demand before any retry.", perDependency...),
		retries: counter("retry_attempts_total",
			"Retries sent, by the number of the attempt; the first retry is attempt 2.", with(labelAttempt)...),
		exhausted: counter("retry_exhausted_total",
			"Calls that ended with their retries or their time used up. Refusals of the budget are not among them.", perDependency...),
		backoff: histogram("retry_backoff_duration_seconds",
			"The wait before each retry.", []float64{.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60}, perDependency...),
		attempts: histogram("retry_attempts_per_call",
			"How many attempts a call took, the first included.", []float64{1, 2, 3, 4, 5, 6, 8, 11}, perDependency...),
		latency: histogram("retry_attempt_duration_seconds",
			"How long an attempt took, first attempts and retries apart.", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, with("attempt")...),
		recovered: counter("retry_success_after_retry_total",
			"Calls that succeeded only after a retry, by what had failed before.", with(labelErrorType)...),
		failed: counter("retry_failed_calls_total",
			"Calls that failed after at least one attempt, by the last failure and the reason why it ended there.", with(labelErrorType, labelReason)...),
		suppressed: counter("retry_suppressed_total",
			"Calls and retries that were withheld, by reason.", with(labelReason)...),
		overBudget: counter("retry_budget_exhausted_total",
			"Retries that the budget refused.", perDependency...),
		paced: counter("retry_paced_total",
			"Retries of durable work beyond the budget's share, which successes have earned.", perDependency...),
		timeBudget: counter("timeout_budget_exhausted_total",
			"Attempts that were not begun because what was left of the time was less than they need.", perDependency...),
		certificates: counter("tls_certificate_errors_total",
			"Calls that ended because the peer's certificate was refused. They are never retried.", perDependency...),
		refreshes: counter("retry_credential_refreshes_total",
			"Credentials fetched anew for a retry, by outcome: ok or failed.", with(labelOutcome)...),
		dead: counter("dlq_messages_total",
			"Messages put into a dead-letter queue.", "queue"),
		incoming: counter("retry_incoming_requests_total",
			"Requests that the service received, where its handler is wrapped in Inbound.", labelService),
		breakerCalls: counter("circuit_breaker_calls_total",
			"Attempts as the circuit breaker counts them, by outcome: success, slow, failure, ignored, not_permitted.", with(labelOutcome)...),
		breakerMoves: counter("circuit_breaker_state_transitions_total",
			"Transitions of the circuit breaker.", with("from", "to")...),
		breakerOpened: counter("circuit_breaker_opened_total",
			"Openings of the circuit breaker, by cause: failures, slow_calls, budget, probe_failed, operator.", with(labelCause)...),
		rejections: counter("bulkhead_rejections_total",
			"Calls that were refused because too many were under way.", perDependency...),
	}
}

// collectors lists v for registration.
func (v *vectors) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		v.initial, v.retries, v.exhausted, v.backoff, v.attempts, v.latency, v.recovered, v.failed, v.suppressed,
		v.overBudget, v.paced, v.timeBudget, v.certificates, v.refreshes, v.dead, v.incoming, v.breakerCalls,
		v.breakerMoves, v.breakerOpened, v.rejections,
	}
}
