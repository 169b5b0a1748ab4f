package forbear

import (
	"context"
	"time"
)

// This file is for the durable mouths, which keep a call's [State] themselves
// between attempts and use [Retryer.Next] directly.

// Classify returns what the Retryer makes of an operation's error, by the
// operation's marks, the classifiers and what forbear knows by itself. ctx is
// the caller's: its end is not the operation's fault.
func (r *Retryer) Classify(ctx context.Context, err error) Failure {
	return classify(ctx, err, r.classifiers)
}

// Requested tells the budget of a first attempt. [Call] tells by itself.
func (r *Retryer) Requested(now time.Time) { r.budget.Request(now) }

// Reconsider asks again about a failure whose retry was put off, because the
// budget was spent, the breaker open or the dependency unhealthy. It decides as
// [Retryer.Next] does, but the failure is not a new one: neither the breaker
// nor the count of DNS failures hears of it a second time.
//
// Ask [Retryer.Admit] first. A breaker whose wait is over moves only when it is
// asked for an attempt, so that whoever reconsidered alone would find it open
// for ever. A retry that is refused here goes back with [Retryer.Withdraw].
func (r *Retryer) Reconsider(s *State, f Failure, now time.Time) Decision {
	if s.Attempt = s.attempt(); s.Start.IsZero() {
		s.Start = now
	}
	return r.commit(s, r.decide(s, &f, now), now)
}

// Earned returns a channel that is closed when the dependency next succeeds, and
// with it earns retries beyond the budget's share: then it is worth asking
// again. Take it before asking, so that no success is missed. It is nil, which
// blocks for ever, for kinds that do not wait.
func (r *Retryer) Earned() <-chan struct{} {
	if r.pace == nil {
		return nil
	}
	return r.pace.next()
}

// PutOff returns how long work waits that was refused for the moment, for the
// (n+1)th time since its failure: behind an open breaker until it lets something
// through and up to a quarter more, otherwise a second and up to 2 s, 4 s ... 5
// min more, so that a crowd spreads.
func (r *Retryer) PutOff(why Reason, n int, now time.Time) time.Duration {
	least, spread := time.Second, min(2*time.Second<<min(n, 8), 5*time.Minute)
	if why == ReasonBreakerOpen && r.breaker != nil {
		least = max(r.breaker.Wait(now), time.Second)
		spread = least / 4
	}
	return least + time.Duration(r.draw()*float64(spread))
}

// The events of a durable call are told by whoever keeps its State.

// Info returns what the events of a call have in common.
func (r *Retryer) Info(s *State, correlation string) Info {
	return Info{
		Dependency: r.dependency, CorrelationID: correlation, IdempotencyKey: s.Key,
		Attempt: s.attempt(), MaxAttempts: r.policy.limit(s, Hint{}) + 1,
	}
}

// Attempted tells the observers that attempt i.Attempt has ended; f is of
// ClassSuccess for a good one.
func (r *Retryer) Attempted(ctx context.Context, i Info, f Failure, took time.Duration) {
	slow := r.policy.Breaker.SlowCall
	e := AttemptEnded{
		Info: i, Failure: f, Latency: took,
		Slow: f.Class == ClassSuccess && r.breaker != nil && slow > 0 && took >= slow,
	}
	for _, o := range r.observers.end {
		o.AttemptEnded(ctx, e)
	}
}

// Done tells the observers that a call ended well. before is the error_type of
// the attempt before the good one, if there was one.
func (r *Retryer) Done(ctx context.Context, i Info, elapsed time.Duration, before string) {
	for _, o := range r.observers.success {
		o.Succeeded(ctx, Succeeded{Info: i, Elapsed: elapsed, FailedBefore: before})
	}
}

// Decided tells the observers what follows failure f of attempt i.Attempt: the
// retry, or the end after that many attempts. attempts is 0 for a retry that is
// only put off: that it was withheld is told, and that the call ended is not.
func (r *Retryer) Decided(ctx context.Context, i Info, d Decision, f Failure, elapsed time.Duration, attempts int, now time.Time) {
	if len(r.observers.level) > 0 && (d.Retry || d.Reason == ReasonBudget) {
		e := BudgetLevel{Dependency: r.dependency, Level: r.budget.Level(now)}
		for _, o := range r.observers.level {
			o.BudgetLevel(ctx, e)
		}
	}
	if d.Retry {
		i.Attempt++
		for _, o := range r.observers.retry {
			o.RetryScheduled(ctx, RetryScheduled{Info: i, Backoff: d.Wait, Reason: d.Reason, Failure: f, Paced: d.Paced})
		}
		return
	}
	if d.Reason == ReasonCertificate {
		for _, o := range r.observers.certificate {
			o.CertificateRefused(ctx, CertificateRefused{Info: i, Failure: f})
		}
	}
	e := Stopped{Info: i, Reason: d.Reason, Failure: f, Elapsed: elapsed, Attempts: attempts}
	if d.Reason == ReasonBudget {
		e.Level = r.budget.Level(now)
	}
	for _, o := range r.observers.stop {
		o.Stopped(ctx, e)
	}
}
