package otelretry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/label"
)

// scope names the instrumentation.
const scope = "github.com/forbear-go/forbear/otelretry"

// Observer is an observer for [forbear.WithObserver]. One serves all Retryers of
// a process. It does not replace the log of retries. It is safe for
// concurrent use; make it with [New].
type Observer struct {
	service string
	labels  label.Set
	inst    instruments

	mu       sync.Mutex
	retryers map[string]*forbear.Retryer
}

// Option changes what [New] returns.
type Option func(*config)

type config struct {
	service string
	meters  metric.MeterProvider
}

// WithService sets the attribute service of all metrics.
func WithService(name string) Option { return func(c *config) { c.service = name } }

// WithMeterProvider replaces the global MeterProvider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// New returns an observer that writes to the global MeterProvider, unless an
// option names another. An error is that of an instrument.
func New(opts ...Option) (*Observer, error) {
	c := config{meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		opt(&c)
	}
	o := &Observer{service: label.Clip(c.service), retryers: map[string]*forbear.Retryer{}}
	meter := c.meters.Meter(scope)
	if err := errors.Join(o.inst.open(meter), o.gauges(meter)); err != nil {
		return o, err
	}
	o.inst.incoming.Add(context.Background(), 0, o.serviceAttribute()) // a rate needs a beginning
	return o, nil
}

// of returns the attributes of a dependency and more.
func (o *Observer) of(dependency string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(more, attribute.String("service", o.service),
		attribute.String("dependency", o.labels.Bounded("dependency", dependency)))...)
}

func (o *Observer) errorType(t string) attribute.KeyValue {
	return attribute.String("error_type", o.labels.Bounded("error_type", t))
}

func reason(r forbear.Reason) attribute.KeyValue { return attribute.String("reason", r.String()) }

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (o *Observer) Observer() *forbear.Observer {
	return &forbear.Observer{
		KeepsLog:       true,
		Attached:       o.attached,
		AttemptEnded:   o.attemptEnded,
		RetryScheduled: o.retryScheduled,
		Succeeded:      o.succeeded,
		Stopped:        o.stopped,
		BreakerMoved:   o.breakerMoved,
		TokenRefreshed: o.tokenRefreshed,
		DeadLettered:   o.deadLettered,
	}
}

// attached : what alerts take the increase of
// begins at 0 rather than at its first event.
func (o *Observer) attached(r *forbear.Retryer) {
	ctx := context.Background()
	if r.Breaker() != nil {
		for _, move := range [...][2]breaker.State{
			{breaker.Closed, breaker.Open},
			{breaker.Open, breaker.HalfOpen},
			{breaker.HalfOpen, breaker.Open},
			{breaker.HalfOpen, breaker.Closed},
		} {
			o.inst.breakerMoves.Add(ctx, 0, o.moved(r.Dependency(), move[0], move[1]))
		}
		for _, why := range [...]breaker.Cause{
			breaker.CauseFailures, breaker.CauseSlow, breaker.CauseBudget, breaker.CauseProbe, breaker.CauseOperator,
		} {
			o.inst.breakerOpened.Add(ctx, 0, o.opened(r.Dependency(), why))
		}
	}
	if k := r.Policy().Kind; k.Durable() || k == forbear.Batch {
		o.inst.paced.Add(ctx, 0, o.of(r.Dependency()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retryers[r.Dependency()] = r
}

// maxAttempt bounds the attribute attempt_number.
const maxAttempt = 16

func (o *Observer) attemptEnded(ctx context.Context, e forbear.AttemptEnded) {
	kind := attribute.String("attempt", "first")
	if e.Attempt <= 1 {
		o.inst.initial.Add(ctx, 1, o.of(e.Dependency))
	} else {
		kind = attribute.String("attempt", "retry")
		o.inst.retries.Add(ctx, 1, o.of(e.Dependency, attribute.Int("attempt_number", min(e.Attempt, maxAttempt))))
	}
	o.inst.latency.Record(ctx, e.Latency.Seconds(), o.of(e.Dependency, kind))
	o.inst.breakerCalls.Add(ctx, 1, o.of(e.Dependency, attribute.String("outcome", outcome(e))))
}

// outcome names what a circuit breaker makes of an attempt.
func outcome(e forbear.AttemptEnded) string {
	out, counts := e.Failure.Outcome()
	switch {
	case !counts:
		return "ignored"
	case out == breaker.Failed:
		return "failure"
	case e.Slow:
		return "slow"
	default:
		return "success"
	}
}

func (o *Observer) succeeded(ctx context.Context, e forbear.Succeeded) {
	o.inst.attempts.Record(ctx, int64(e.Attempt), o.of(e.Dependency))
	if e.Attempt > 1 {
		o.inst.recovered.Add(ctx, 1, o.of(e.Dependency, o.errorType(e.FailedBefore)))
	}
}

func (o *Observer) retryScheduled(ctx context.Context, e forbear.RetryScheduled) {
	o.inst.backoff.Record(ctx, e.Backoff.Seconds(), o.of(e.Dependency))
	if e.Paced {
		o.inst.paced.Add(ctx, 1, o.of(e.Dependency))
	}
	o.spanRetry(ctx, e)
}

func (o *Observer) stopped(ctx context.Context, e forbear.Stopped) {
	if e.Attempts > 0 {
		o.inst.attempts.Record(ctx, int64(e.Attempts), o.of(e.Dependency))
		o.inst.failed.Add(ctx, 1, o.of(e.Dependency, o.errorType(e.Failure.Type), reason(e.Reason)))
		if e.Reason.Exhausted() {
			o.inst.exhausted.Add(ctx, 1, o.of(e.Dependency))
		}
	}
	if e.Reason.Suppressed() {
		o.inst.suppressed.Add(ctx, 1, o.of(e.Dependency, reason(e.Reason)))
	}
	switch e.Reason {
	case forbear.ReasonBudget:
		o.inst.overBudget.Add(ctx, 1, o.of(e.Dependency))
	case forbear.ReasonBreakerOpen:
		if e.Attempts == 0 {
			o.inst.breakerCalls.Add(ctx, 1, o.of(e.Dependency, attribute.String("outcome", "not_permitted")))
		}
	case forbear.ReasonBulkheadFull:
		o.inst.rejections.Add(ctx, 1, o.of(e.Dependency))
	case forbear.ReasonCertificate:
		o.inst.certificates.Add(ctx, 1, o.of(e.Dependency))
	case forbear.ReasonHintTooLong:
		o.inst.timeBudget.Add(ctx, 1, o.of(e.Dependency))
	case forbear.ReasonDeadline:
		if e.Attempts == 0 || e.Failure.Type != forbear.TypeCallerDeadline {
			o.inst.timeBudget.Add(ctx, 1, o.of(e.Dependency))
		}
	}
	o.spanStopped(ctx, e)
}

func (o *Observer) breakerMoved(e breaker.Transition) {
	ctx := context.Background()
	o.inst.breakerMoves.Add(ctx, 1, o.moved(e.Dependency, e.From, e.To))
	if e.To == breaker.Open {
		o.inst.breakerOpened.Add(ctx, 1, o.opened(e.Dependency, e.Cause))
	}
}

func (o *Observer) moved(dependency string, from, to breaker.State) metric.MeasurementOption {
	return o.of(dependency, attribute.String("from", from.String()), attribute.String("to", to.String()))
}

func (o *Observer) opened(dependency string, why breaker.Cause) metric.MeasurementOption {
	return o.of(dependency, attribute.String("cause", why.String()))
}

func (o *Observer) tokenRefreshed(ctx context.Context, e forbear.TokenRefreshed) {
	result := "ok"
	if e.Err != nil {
		result = "failed"
	}
	o.inst.refreshes.Add(ctx, 1, o.of(e.Dependency, attribute.String("outcome", result)))
}

func (o *Observer) deadLettered(ctx context.Context, e forbear.DeadLettered) {
	o.inst.dead.Add(ctx, 1, metric.WithAttributes(attribute.String("queue", o.labels.Bounded("queue", e.Queue))))
}
