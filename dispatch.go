package forbear

import (
	"context"
	"time"
)

// This file is the one place that calls observers, for live calls and durable
// ones alike. Who calls it has asked first whether anyone wants the event, where
// the success path passes.

func (r *Retryer) attemptStarted(ctx context.Context, i Info) {
	for _, o := range r.observers.list {
		if o.AttemptStarted != nil {
			o.AttemptStarted(ctx, i)
		}
	}
}

// attemptEnded reports the end of an attempt; f is of ClassSuccess for a good one.
func (r *Retryer) attemptEnded(ctx context.Context, i Info, f Failure, took time.Duration) {
	e := AttemptEnded{Info: i, Failure: f, Latency: took, Slow: f.Class == ClassSuccess && r.slow(took)}
	for _, o := range r.observers.list {
		if o.AttemptEnded != nil {
			o.AttemptEnded(ctx, e)
		}
	}
}

// callSucceeded reports the good end of a call. before is the error_type of the
// attempt before the good one, if there was one.
func (r *Retryer) callSucceeded(ctx context.Context, i Info, elapsed time.Duration, before string) {
	e := Succeeded{Info: i, Elapsed: elapsed, FailedBefore: before}
	for _, o := range r.observers.list {
		if o.Succeeded != nil {
			o.Succeeded(ctx, e)
		}
	}
}

// retryScheduled reports a retry. i is that of the attempt to come.
func (r *Retryer) retryScheduled(ctx context.Context, i Info, d Decision, f Failure) {
	e := RetryScheduled{Info: i, Backoff: d.Wait, Reason: d.Reason, Failure: f, Paced: d.Paced}
	for _, o := range r.observers.list {
		if o.RetryScheduled != nil {
			o.RetryScheduled(ctx, e)
		}
	}
}

// stopped reports the end of a call after so many attempts; 0 attempts for a call
// refused before its first, and for a retry that is only put off.
func (r *Retryer) stopped(ctx context.Context, i Info, d Decision, f Failure, elapsed time.Duration, attempts int) {
	e := Stopped{Info: i, Reason: d.Reason, Failure: f, Elapsed: elapsed, Attempts: attempts, Level: d.Level, r: r}
	for _, o := range r.observers.list {
		if o.Stopped != nil {
			o.Stopped(ctx, e)
		}
	}
}

// DeadLettered reports to the observers that failed work has reached the named
// queue. [Retryer.Do] does it when it hands work to its sink; those who route
// their dead letters themselves call it.
func (r *Retryer) DeadLettered(ctx context.Context, queue string, why Reason) {
	for _, o := range r.observers.list {
		if o.DeadLettered != nil {
			o.DeadLettered(ctx, DeadLettered{Dependency: r.dependency, Queue: queue, Reason: why})
		}
	}
}

// Refreshed reports to the observers that credentials were fetched anew for a
// retry, or why they could not be. Protocol edges call it.
func (r *Retryer) Refreshed(ctx context.Context, err error) {
	for _, o := range r.observers.list {
		if o.TokenRefreshed != nil {
			o.TokenRefreshed(ctx, TokenRefreshed{Dependency: r.dependency, Err: err})
		}
	}
}

// layered counts a send that another layer has added, and reports the first.
func (r *Retryer) layered(ctx context.Context, e LayeredRetry) {
	r.layeredSends.Add(1)
	r.layeredOnce.Do(func() {
		e.Dependency, e.CorrelationID, e.MaxAttempts = r.dependency, CorrelationID(ctx), r.policy.Retries()+1
		for _, o := range r.observers.list {
			if o.LayeredRetry != nil {
				o.LayeredRetry(ctx, e)
			}
		}
	})
}
