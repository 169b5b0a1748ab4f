package otelretry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are what events move, under the names that promretry has.
type instruments struct {
	initial, retries, exhausted, recovered, failed, suppressed, overBudget, paced metric.Int64Counter

	timeBudget, certificates, refreshes, dead, incoming metric.Int64Counter

	breakerCalls, breakerMoves, breakerOpened, rejections metric.Int64Counter

	backoff, latency metric.Float64Histogram
	attempts         metric.Int64Histogram
}

func (i *instruments) open(m metric.Meter) (err error) {
	for _, c := range []struct {
		into       *metric.Int64Counter
		name, help string
	}{
		{&i.initial, "retry_initial_requests_total", "First attempts: the demand before any retry."},
		{&i.retries, "retry_attempts_total", "Retries sent, by the number of the attempt; the first retry is attempt 2."},
		{&i.exhausted, "retry_exhausted_total", "Calls that ended with their retries or their time used up."},
		{&i.recovered, "retry_success_after_retry_total", "Calls that succeeded only after a retry, by what had failed before."},
		{&i.failed, "retry_failed_calls_total", "Calls that failed after at least one attempt."},
		{&i.suppressed, "retry_suppressed_total", "Calls and retries that were withheld, by reason."},
		{&i.overBudget, "retry_budget_exhausted_total", "Retries that the budget refused."},
		{&i.paced, "retry_paced_total", "Retries of durable work beyond the budget's share, which successes have earned."},
		{&i.timeBudget, "timeout_budget_exhausted_total", "Attempts that were not begun for lack of time."},
		{&i.certificates, "tls_certificate_errors_total", "Calls that ended because the peer's certificate was refused."},
		{&i.refreshes, "retry_credential_refreshes_total", "Credentials fetched anew for a retry, by outcome."},
		{&i.dead, "dlq_messages_total", "Messages put into a dead-letter queue."},
		{&i.incoming, "retry_incoming_requests_total", "Requests that the service received, where its handler is wrapped in Inbound."},
		{&i.breakerCalls, "circuit_breaker_calls_total", "Attempts as the circuit breaker counts them, by outcome."},
		{&i.breakerMoves, "circuit_breaker_state_transitions_total", "Transitions of the circuit breaker."},
		{&i.breakerOpened, "circuit_breaker_opened_total", "Openings of the circuit breaker, by cause."},
		{&i.rejections, "bulkhead_rejections_total", "Calls that were refused because too many were under way."},
	} {
		counter, e := m.Int64Counter(c.name, metric.WithDescription(c.help))
		*c.into, err = counter, errors.Join(err, e)
	}
	var e1, e2, e3 error
	i.backoff, e1 = m.Float64Histogram("retry_backoff_duration_seconds", metric.WithUnit("s"),
		metric.WithDescription("The wait before each retry."),
		metric.WithExplicitBucketBoundaries(.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60))
	i.latency, e2 = m.Float64Histogram("retry_attempt_duration_seconds", metric.WithUnit("s"),
		metric.WithDescription("How long an attempt took, first attempts and retries apart."),
		metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	i.attempts, e3 = m.Int64Histogram("retry_attempts_per_call",
		metric.WithDescription("How many attempts a call took, the first included."),
		metric.WithExplicitBucketBoundaries(1, 2, 3, 4, 5, 6, 8, 11))
	return errors.Join(err, e1, e2, e3)
}
