package forbear

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/pace"
	"github.com/forbear-go/forbear/reason"
)

// Retryer applies one policy to the calls to one dependency, and owns what they
// share: the budget, the observers. It is safe for concurrent use and is meant
// to live as long as the process; make one per dependency, with [New] or
// through a [Set]. Most callers want [Retryer.Do].
type Retryer struct {
	dependency string
	policy     Policy // with defaults
	given      Policy // as it was passed in
	budget     budget.Budget
	ratio      *budget.Ratio            // budget, when it is of the default kind
	shares     *budget.Policy           // budget's, when it counts in a window
	outcomes   outcomeBudget            // budget, when it cares how calls end
	gate       *health.Gate             // nil when the policy sets no limit
	healthy    func(now time.Time) bool // the caller's gate beside it, or nil
	breaker    *breaker.Breaker         // nil when the policy has none
	bulkhead   *breaker.Bulkhead        // nil when the policy sets no bound
	earned     *earnings                // nil for calls whose caller waits
	pacer      *pace.Pacer              // nil when sends are not paced
	service    string
	named      bool // by WithService

	layeredOnce  sync.Once
	layeredSends atomic.Int64

	observers   observers
	observed    bool
	correlate   func(context.Context) string
	classifiers []classifier
	waivers     []Waiver
	sink        DeadLetterSink
	callerSink  bool
	rand        func() float64
}

// Dependency returns the name of the dependency.
func (r *Retryer) Dependency() string { return r.dependency }

// Policy returns the policy with its defaults filled in.
func (r *Retryer) Policy() Policy { return r.policy }

// Level returns the reading of the budget.
func (r *Retryer) Level(now time.Time) budget.Level { return r.budget.Level(now) }

// Breaker returns the circuit breaker, or nil when the policy has none.
func (r *Retryer) Breaker() *breaker.Breaker { return r.breaker }

// Bulkhead returns the bulkhead, or nil when the policy sets no bound.
func (r *Retryer) Bulkhead() *breaker.Bulkhead { return r.bulkhead }

func (r *Retryer) breakerMoved(e breaker.Transition) {
	e.Dependency = r.dependency
	if r.earned != nil && e.To == breaker.Closed {
		r.earned.forget()
	}
	for _, o := range r.observers.list {
		if o.BreakerMoved != nil {
			o.BreakerMoved(e)
		}
	}
}

// outcomeBudget is a [budget.Budget] that also learns how calls end; token
// buckets live on that.
type outcomeBudget interface {
	budget.Budget
	// Failed records a failed attempt of a retryable kind, before Spend.
	Failed(now time.Time)
	// Succeeded records a successful call. retries is the number of its retries
	// and last the cost of the last one.
	Succeeded(now time.Time, retries int, last budget.Cost)
}

// Option changes what a [Retryer] runs with; what it may do is the [Policy]'s.
type Option func(*Retryer) error

// DeadLetterSink takes what a durable call could not do.
type DeadLetterSink interface {
	// DeadLetter stores the failed work. Its context is detached from the
	// call's. An error is returned to the caller, joined with the call's own.
	DeadLetter(ctx context.Context, e *Error) error
}

// figures notes what the refusal of a budget or a breaker rested on. The numbers are
// kept as they are, and put into words by those who ask for the text: under an
// overload most errors are never read.
func (r *Retryer) figures(e *Error, d Decision, now time.Time) {
	switch {
	case e.Reason == reason.Budget:
		e.Level, e.shares = d.Level, r.shares
	case e.Reason != reason.BreakerOpen || r.breaker == nil:
	case r.breaker.State() == breaker.HalfOpen:
		e.standing = probing
	case r.breaker.Forced():
		e.standing = held
	default:
		e.Until = now.Add(r.breaker.Wait(now))
	}
}

// slow reports whether a good attempt was slower than the policy's slow call.
func (r *Retryer) slow(took time.Duration) bool {
	limit := r.policy.Breaker.SlowCall
	return r.breaker != nil && limit > 0 && took >= limit
}

// classifier turns an error into a failure when it knows the error; ok is false
// when it does not, and the next one is asked.
type classifier = func(err error) (f Failure, ok bool)
