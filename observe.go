package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/layer"
)

// Observer is a set of callbacks, in the manner of net/http/httptrace.ClientTrace:
// set those that you want and pass it to [WithObserver]. An event that no one
// observes costs nothing, and a new event breaks no observer. Callbacks run
// synchronously, from many goroutines; they must be quick.
type Observer struct {
	// KeepsLog says that the Observer does not log: the default log stays on beside it.
	KeepsLog bool
	// ListsFailed says that the Observer reads Info.Failed, which is nil without one that does.
	ListsFailed bool

	// Attached is called once for each Retryer that the Observer was passed to,
	// so that it can read the budget, the breaker and the bulkhead when it likes.
	Attached func(*Retryer)

	// AttemptStarted is called before each attempt, AttemptEnded after it, the
	// successful ones included.
	AttemptStarted func(context.Context, Info)
	AttemptEnded   func(context.Context, AttemptEnded)
	// RetryScheduled is called for each retry, before its wait.
	RetryScheduled func(context.Context, RetryScheduled)
	// Succeeded is called when a call ends well.
	Succeeded func(context.Context, Succeeded)
	// Stopped is called when a failed call ends: exhausted, suppressed (see
	// [Reason.Exhausted] and [Reason.Suppressed]) or final. A refused
	// certificate, which may be an attack, has [reason.Certificate].
	Stopped func(context.Context, Stopped)

	// BreakerMoved is called at each transition of the circuit breaker, with the
	// breaker's lock held: it must not ask the breaker back.
	BreakerMoved func(breaker.Transition)
	// LayeredRetry is called, once for each dependency, when a layer below or
	// above is seen to retry by itself.
	LayeredRetry func(context.Context, LayeredRetry)
	// TokenRefreshed is called after each refresh of credentials.
	TokenRefreshed func(context.Context, TokenRefreshed)
	// DeadLettered is called when failed work has reached a dead-letter queue.
	DeadLettered func(context.Context, DeadLettered)
}

// Info says which call an event belongs to.
type Info struct {
	Dependency string
	// CorrelationID is that of the context, or of [WithCorrelation], or one
	// made for the call. A call that succeeds at once may have none when
	// no observer asks for its start.
	CorrelationID  string
	IdempotencyKey string
	Attempt        int // the first is 1
	MaxAttempts    int
	// Failed are the failed attempts so far about which a decision was made, oldest
	// first, where an Observer has ListsFailed. They are the latest 16, of a durable call
	// those of this process, and are to be read in the callback alone.
	Failed []FailedAttempt
}

// FailedAttempt is one failed attempt of a call, with what was decided about it.
type FailedAttempt struct {
	Number  int // the first is 1
	At      time.Time
	Took    time.Duration
	Failure Failure
	Reason  Reason
	Wait    time.Duration // before the next, if one was granted
}

// maxFailed bounds the failed attempts that a call keeps.
const maxFailed = 16

// AttemptEnded is the event after an attempt. Failure.Class is ClassSuccess for
// a good one.
type AttemptEnded struct {
	Info
	Failure Failure
	// Latency is how long the attempt took, the waits apart. For HTTP it ends
	// with the headers of the response.
	Latency time.Duration
	// Slow says that a breaker counts a good attempt as slow.
	Slow bool
}

// Succeeded is the event at the end of a call that ended well, on attempt
// Info.Attempt.
type Succeeded struct {
	Info
	Elapsed time.Duration // waits included
	// FailedBefore is the error_type of the attempt before the good one; "" in
	// a call that succeeded at once.
	FailedBefore string
}

// RetryScheduled is the event between a failed attempt and the wait before the
// next. Info.Attempt is the number of the attempt to come.
type RetryScheduled struct {
	Info
	Backoff time.Duration
	Reason  Reason
	Failure Failure
	// Paced says that the budget is spent and the retry one of those that
	// durable work may make beyond it.
	Paced bool
}

// Stopped is the event at the end of a call that failed.
type Stopped struct {
	Info
	Reason  Reason
	Failure Failure
	Elapsed time.Duration
	// Attempts is how many were made; 0 for a call that was refused before its
	// first, and for durable work whose retry is only postponed.
	Attempts int
	// Level is the budget's reading, when the budget said no.
	Level budget.Level

	r *Retryer
}

// Explain says why the call ended as [Error.Explain] does. It reads the breaker as it
// stands now, and is for use in the callback.
func (s *Stopped) Explain() string {
	e := &Error{Reason: s.Reason, Type: s.Failure.Type, RetryAfter: s.Failure.Hint.Floor}
	if s.r != nil {
		s.r.figures(e, Decision{Reason: s.Reason, Level: s.Level}, time.Now())
	}
	return e.Explain()
}

// postponed reports whether the call has not ended: it is durable work, and asks again.
func (s *Stopped) postponed() bool {
	return s.r != nil && s.r.policy.Kind.Durable() && s.Reason.Momentary() && s.Attempts == 0 && s.Failure.Type != ""
}

// LayeredRetry is the event of another layer that retries by itself: one below
// that sends the same request more than once in one attempt, or one above.
type LayeredRetry struct {
	Info
	// Sends is how many times the request was sent in that attempt; of a layer
	// above, the number of its own attempt.
	Sends int
	// Above says on which side the layer is.
	Above bool
}

// TokenRefreshed is the event of credentials that were fetched anew.
type TokenRefreshed struct {
	Dependency string
	// Err is why that failed; nil when it did not. [LogObserver] logs none of its
	// text; an error in its tree that is a [slog.LogValuer] is logged as the cause.
	Err error
}

// DeadLettered is the event of work that was put into a dead-letter queue.
type DeadLettered struct {
	Dependency string
	Queue      string
	Reason     Reason
}

// observers are those of one Retryer, and which of the frequent events any of them
// wants: an event that no one observes costs one look at a flag.
type observers struct {
	list []*Observer

	started, ended, scheduled, succeeded, stopped, listing bool
}

func (os *observers) add(o *Observer) {
	os.list = append(os.list, o)
	os.started = os.started || o.AttemptStarted != nil
	os.ended = os.ended || o.AttemptEnded != nil
	os.scheduled = os.scheduled || o.RetryScheduled != nil
	os.succeeded = os.succeeded || o.Succeeded != nil
	os.stopped = os.stopped || o.Stopped != nil
	os.listing = os.listing || o.ListsFailed
}

// empty reports whether o has no callback, which is a mistake.
func (o *Observer) empty() bool {
	return o.Attached == nil && o.AttemptStarted == nil && o.AttemptEnded == nil && o.RetryScheduled == nil &&
		o.Succeeded == nil && o.Stopped == nil && o.BreakerMoved == nil && o.LayeredRetry == nil &&
		o.TokenRefreshed == nil && o.DeadLettered == nil
}

// This file is the one place that calls observers, for live calls and durable
// ones alike. The caller has asked first whether any observer wants the event, where
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
// refused before its first, and for a retry that is only postponed.
func (r *Retryer) stopped(ctx context.Context, i Info, d Decision, f Failure, elapsed time.Duration, attempts int) {
	e := Stopped{Info: i, Reason: d.Reason, Failure: f, Elapsed: elapsed, Attempts: attempts, Level: d.Level, r: r}
	for _, o := range r.observers.list {
		if o.Stopped != nil {
			o.Stopped(ctx, e)
		}
	}
}

// listed returns list with a, where an observer reads it.
func (r *Retryer) listed(list []FailedAttempt, a FailedAttempt) []FailedAttempt {
	if !r.observers.listing {
		return nil
	}
	if len(list) == maxFailed {
		list = append(list[:0], list[1:]...)
	}
	return append(list, a)
}

// deadLettered reports that failed work has reached the named queue.
func (r *Retryer) deadLettered(ctx context.Context, queue string, why Reason) {
	for _, o := range r.observers.list {
		if o.DeadLettered != nil {
			o.DeadLettered(ctx, DeadLettered{Dependency: r.dependency, Queue: queue, Reason: why})
		}
	}
}

// refreshed reports that credentials were fetched anew for a retry, or why they could
// not be.
func (r *Retryer) refreshed(ctx context.Context, err error) {
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
		e.Dependency, e.CorrelationID, e.MaxAttempts = r.dependency, layer.Correlation(ctx), r.policy.Retries()+1
		for _, o := range r.observers.list {
			if o.LayeredRetry != nil {
				o.LayeredRetry(ctx, e)
			}
		}
	})
}
