package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// info returns what all events of the call have in common. name asks for a
// correlation id to be made where there is none.
func (c *Call) info(ctx context.Context, name bool) Info {
	if c.correlation == "" {
		c.correlation = c.r.CorrelationID(ctx)
	}
	if c.correlation == "" && name {
		c.correlation = newID()
	}
	key := c.State.Key
	if key == "" {
		key = IdempotencyKey(ctx)
	}
	return Info{
		Dependency:     c.r.dependency,
		CorrelationID:  c.correlation,
		IdempotencyKey: key,
		Attempt:        c.Attempt(),
		MaxAttempts:    c.r.policy.limit(&c.State, Hint{}) + 1,
	}
}

// CorrelationID returns the id under which the calls made under ctx are logged:
// that of [WithCorrelationID], or of [WithCorrelation]; "" when one will be made.
func (r *Retryer) CorrelationID(ctx context.Context) string {
	id := CorrelationID(ctx)
	if id == "" && r.correlate != nil {
		id = r.correlate(ctx)
	}
	return id
}

func (c *Call) started(ctx context.Context) {
	e := AttemptStarted{c.info(ctx, true)}
	for _, o := range c.r.observers.start {
		o.AttemptStarted(ctx, e)
	}
}

// latency returns how long the attempt under way has taken.
func (c *Call) latency() time.Duration {
	return time.Since(window.Epoch()) - c.attempted
}

func (c *Call) ended(ctx context.Context, f Failure) {
	e := AttemptEnded{Info: c.info(ctx, true), Failure: f, Latency: c.latency()}
	for _, o := range c.r.observers.end {
		o.AttemptEnded(ctx, e)
	}
}

// endedWell tells the end of a good attempt, and with it of the call.
func (c *Call) endedWell(ctx context.Context) {
	info, took := c.info(ctx, false), c.latency()
	slow := c.r.policy.Breaker.SlowCall
	e := AttemptEnded{
		Info:    info,
		Failure: Failure{Class: ClassSuccess},
		Latency: took,
		Slow:    c.r.breaker != nil && slow > 0 && took >= slow,
	}
	for _, o := range c.r.observers.end {
		o.AttemptEnded(ctx, e)
	}
	if len(c.r.observers.success) == 0 {
		return
	}
	whole := took + c.attempted - c.began
	for _, o := range c.r.observers.success {
		o.Succeeded(ctx, Succeeded{Info: info, Elapsed: whole, FailedBefore: c.failed})
	}
}

func (c *Call) scheduled(ctx context.Context, d Decision, f Failure) {
	e := RetryScheduled{Info: c.info(ctx, true), Backoff: d.Wait, Reason: d.Reason, Failure: f, Paced: d.Paced}
	for _, o := range c.r.observers.retry {
		o.RetryScheduled(ctx, e)
	}
}

func (c *Call) budgetLevel(ctx context.Context, now time.Time) {
	e := BudgetLevel{Dependency: c.r.dependency, Level: c.r.budget.Level(now)}
	for _, o := range c.r.observers.level {
		o.BudgetLevel(ctx, e)
	}
}

func (c *Call) certificateRefused(ctx context.Context, f Failure) {
	e := CertificateRefused{Info: c.info(ctx, true), Failure: f}
	for _, o := range c.r.observers.certificate {
		o.CertificateRefused(ctx, e)
	}
}

// stopped tells the end of a call that failed after the given number of
// attempts.
func (c *Call) stopped(ctx context.Context, d Decision, f Failure, now time.Time, attempts int) {
	e := Stopped{
		Info: c.info(ctx, true), Reason: d.Reason, Failure: f,
		Elapsed: now.Sub(c.Start()), Attempts: attempts,
	}
	if d.Reason == ReasonBudget {
		e.Level = c.r.budget.Level(now)
	}
	for _, o := range c.r.observers.stop {
		o.Stopped(ctx, e)
	}
}

// DeadLettered tells the observers that failed work has reached the named
// queue. [Retryer.Do] tells by itself when it hands work to its sink; those who
// route their dead letters themselves call it.
func (r *Retryer) DeadLettered(ctx context.Context, queue string, why Reason) {
	for _, o := range r.observers.dead {
		o.DeadLettered(ctx, DeadLettered{Dependency: r.dependency, Queue: queue, Reason: why})
	}
}
