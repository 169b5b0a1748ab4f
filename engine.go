package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/only"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/pace"
)

// Live is what package edge keeps of a live call; there its use is explained. It has
// nothing for anyone else.
type Live struct{ call call }

// Call is for package edge.
func (l *Live) Call(only.Edge) *call { return &l.call }

// Edge is for package edge: what a Retryer does for calls that others drive.
func (r *Retryer) Edge(only.Edge) *engine { return (*engine)(r) }

// engine is a [Retryer] as package edge sees it.
type engine Retryer

// Begin starts a live call in l, paced by p where it is not nil.
func (e *engine) Begin(ctx context.Context, l *Live, p *pace.Pacer) error {
	l.call.pacer = p
	return (*Retryer)(e).begin(ctx, &l.call)
}

// Read copies into s what the caller's context says about a call.
func (e *engine) Read(ctx context.Context, s *State) { readContext(ctx, s) }

// Correlation returns the id under which calls made under ctx are logged, or "".
func (e *engine) Correlation(ctx context.Context) string { return (*Retryer)(e).correlation(ctx) }

// Policy returns the policy with its defaults, which is not to be changed.
func (e *engine) Policy() *Policy { return &e.policy }

// Remaining returns what is left of a call's time.
func (e *engine) Remaining(s *State, now time.Time) time.Duration { return e.policy.remaining(s, now) }

// Limit returns how long an attempt may take of the usual time, when so much is left.
func (e *engine) Limit(usual time.Duration, permit breaker.Permit, left time.Duration) time.Duration {
	return limit(usual, permit, left)
}

// Admit asks the breaker for an attempt.
func (e *engine) Admit(now time.Time) (breaker.Permit, Reason) { return (*Retryer)(e).admit(now) }

// Withdraw ends an admitted attempt that says nothing about the dependency.
func (e *engine) Withdraw(permit breaker.Permit) { (*Retryer)(e).withdraw(permit) }

// Request counts a first attempt in the budget.
func (e *engine) Request(now time.Time) { e.budget.Request(now) }

// Next decides about a failed attempt and commits the decision.
func (e *engine) Next(s *State, permit breaker.Permit, f *Failure, now time.Time) Decision {
	return (*Retryer)(e).next(s, permit, f, now)
}

// Reconsider decides again about a failure whose retry was postponed.
func (e *engine) Reconsider(s *State, f *Failure, now time.Time) Decision {
	return (*Retryer)(e).decide(s, f, now, false)
}

// Free reports whether the retry that d grants was not taken from the budget.
func (e *engine) Free(d Decision) bool { return d.free }

// Good records a good attempt with the breaker, the health gate and the earnings.
func (e *engine) Good(permit breaker.Permit, took time.Duration, now time.Time) {
	(*Retryer)(e).recordGood(permit, took, now)
}

// Failed records a failed attempt with them.
func (e *engine) Failed(permit breaker.Permit, f *Failure, now time.Time) {
	(*Retryer)(e).record(permit, f, now)
}

// PayBack tells a budget that cares how a call has succeeded: after so many retries,
// the last of them after a failure of the given class.
func (e *engine) PayBack(now time.Time, retries int, last Class) {
	if e.outcomes != nil {
		e.outcomes.Succeeded(now, retries, costOf(last))
	}
}

// Run runs one attempt that ends after bound at the latest, with its number on the
// context when it is a retry.
func (e *engine) Run(ctx context.Context, number int, now time.Time, bound time.Duration, op func(context.Context) error) error {
	if number > 1 {
		ctx = (*Retryer)(e).retryContext(ctx, number)
	}
	return newAttemptContext(ctx, duration.Sum(now.Sub(window.Epoch()), bound)).run(op)
}

// Classify says what an error of an operation is.
func (e *engine) Classify(ctx context.Context, err error) Failure {
	return (*Retryer)(e).classify(ctx, err)
}

// Elsewhere returns the end of a call to another dependency that err holds, or nil.
func (e *engine) Elsewhere(err error) *Error { return (*Retryer)(e).elsewhere(err) }

// Err fills in what only the engine knows of the error of a call that d has ended.
func (e *engine) Err(end *Error, d Decision, now time.Time) *Error {
	end.Dependency, end.Reason, end.class = e.dependency, d.Reason, d.Class
	(*Retryer)(e).figures(end, d, now)
	return end
}

// Info returns what the events of a call have in common.
func (e *engine) Info(s *State, correlation string, attempt int) Info {
	return Info{
		Dependency: e.dependency, CorrelationID: correlation, IdempotencyKey: s.Key,
		Attempt: attempt, MaxAttempts: e.policy.limit(s, Hint{}) + 1,
	}
}

// Started reports that an attempt begins.
func (e *engine) Started(ctx context.Context, i Info) { (*Retryer)(e).attemptStarted(ctx, i) }

// Ended reports that an attempt has ended.
func (e *engine) Ended(ctx context.Context, i Info, f Failure, took time.Duration) {
	(*Retryer)(e).attemptEnded(ctx, i, f, took)
}

// Scheduled reports that a retry follows.
func (e *engine) Scheduled(ctx context.Context, i Info, d Decision, f Failure) {
	(*Retryer)(e).retryScheduled(ctx, i, d, f)
}

// Succeeded reports that a call has ended well.
func (e *engine) Succeeded(ctx context.Context, i Info, elapsed time.Duration, before string) {
	(*Retryer)(e).callSucceeded(ctx, i, elapsed, before)
}

// Stopped reports that no retry follows, after so many attempts.
func (e *engine) Stopped(ctx context.Context, i Info, d Decision, f Failure, elapsed time.Duration, attempts int) {
	(*Retryer)(e).stopped(ctx, i, d, f, elapsed, attempts)
}

// Listed returns list with a, where an observer reads it.
func (e *engine) Listed(list []FailedAttempt, a FailedAttempt) []FailedAttempt {
	return (*Retryer)(e).listed(list, a)
}

// Over passes the end of a call on to the request that it was made for.
func (e *engine) Over(ctx context.Context, d Decision) { noteExhaustion(ctx, d) }

// DeadLettered reports that failed work has reached the named queue.
func (e *engine) DeadLettered(ctx context.Context, queue string, why Reason) {
	(*Retryer)(e).deadLettered(ctx, queue, why)
}

// Refreshed reports that credentials were fetched anew, or why they could not be.
func (e *engine) Refreshed(ctx context.Context, err error) { (*Retryer)(e).refreshed(ctx, err) }

// Repeated reports that a request is the given attempt of a layer above.
func (e *engine) Repeated(ctx context.Context, attempt int) {
	(*Retryer)(e).layered(ctx, LayeredRetry{Info: Info{Attempt: 1}, Sends: attempt, Above: true})
}

// LayeredSends returns how many sends other layers have added.
func (e *engine) LayeredSends() int64 { return e.layeredSends.Load() }

// Earned returns how many retries beyond the budget's share the dependency has earned.
func (e *engine) Earned(now time.Time) int {
	if e.earned == nil {
		return 0
	}
	return e.earned.left(now)
}

// Earning returns a channel that is closed with the next success, or nil.
func (e *engine) Earning() <-chan struct{} {
	if e.earned == nil {
		return nil
	}
	return e.earned.next()
}

// Rand draws from [0, 1).
func (e *engine) Rand() float64 { return e.rand() }

// Net recognizes failures of the network.
func (e *engine) Net(err error) (Failure, bool) { return classifyNet(err) }

// Outcome says how a circuit breaker counts a failure.
func (e *engine) Outcome(f *Failure) (o breaker.Outcome, counts bool) { return f.outcome() }

// Refund gives back a granted retry that was not sent.
func (e *engine) Refund(d Decision, now time.Time) { (*Retryer)(e).refund(d, now) }

// Ready waits until the breaker would let an attempt through.
func (e *engine) Ready(ctx context.Context) error { return (*Retryer)(e).ready(ctx) }

// Health reads the health gates.
func (e *engine) Health(now time.Time) (health.Reading, bool) { return (*Retryer)(e).reading(now) }

// Pacer returns what paces the sends, or nil.
func (e *engine) Pacer() *pace.Pacer { return e.pacer }

// Sentinel returns the sentinel error of a reason, or nil.
func (e *engine) Sentinel(why Reason) error { return sentinels[why] }

// ExhaustedBelow reports whether err is the end of a call that a layer below has given
// up.
func (e *engine) ExhaustedBelow(err error) bool { return exhaustedBelow(err) }
