package forbear

import (
	"context"
	"errors"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/pace"
)

// WithObserver adds an observer. The first one replaces the default log, unless it
// says that it is none: metrics beside the log do not silence it.
func WithObserver(o *Observer) Option {
	return func(r *Retryer) error {
		if o == nil || o.empty() {
			return errors.New("the observer has no callbacks: set at least one")
		}
		r.observed = r.observed || !o.KeepsLog
		r.observers.add(o)
		return nil
	}
}

// WithCorrelation asks find for the correlation id of calls whose context names
// none by [WithCorrelationID]: the id of the trace, for instance. When find
// returns "" too, one is made.
func WithCorrelation(find func(context.Context) string) Option {
	return func(r *Retryer) error {
		if find == nil {
			return errors.New("WithCorrelation: the function is nil")
		}
		r.correlate = find
		return nil
	}
}

// WithoutLog silences a Retryer that has no observer. The standard demands the
// log, so silence must be asked for.
func WithoutLog() Option {
	return func(r *Retryer) error {
		r.observed = true
		return nil
	}
}

// WithBudget replaces the policy's budget, to share one between Retryers or to
// use another kind.
func WithBudget(b budget.Budget) Option {
	return func(r *Retryer) error {
		if b == nil {
			return errors.New("nil budget")
		}
		r.budget = b
		return nil
	}
}

// WithPacer paces the attempts of live calls: once the dependency has refused some of
// them for their rate, each waits for its turn, within the time of its own call, or is
// refused with [reason.Paced]. A Pacer belongs to one dependency; Retryers that call the
// same one may share it. Durable calls have a schedule of their own and are not paced.
func WithPacer(p *pace.Pacer) Option {
	return func(r *Retryer) error {
		if p == nil {
			return errors.New("nil pacer")
		}
		r.pacer = p
		return nil
	}
}

// WithRand replaces the source of randomness, for simulations and tests that
// must come out the same each time. rand returns numbers in [0, 1); a Retryer
// that is used from several goroutines calls it from all of them.
func WithRand(rand func() float64) Option {
	return func(r *Retryer) error {
		if rand == nil {
			return errors.New("WithRand: the function is nil")
		}
		r.rand = rand
		return nil
	}
}

// WithClassifier adds classifiers for the errors of [Retryer.Do]. They are
// asked in order, after the operation's own marks; the first that knows wins.
func WithClassifier(c ...func(err error) (f Failure, ok bool)) Option {
	return func(r *Retryer) error {
		r.classifiers = append(r.classifiers, c...)
		return nil
	}
}

// WithWaiver lifts a rule for this dependency. A waiver that matches nothing
// changes nothing.
func WithWaiver(w Waiver) Option {
	return func(r *Retryer) error {
		r.waivers = append(r.waivers, w)
		return nil
	}
}

// WithDeadLetter sets where exhausted work of kind Event or Webhook goes.
func WithDeadLetter(s DeadLetterSink) Option {
	return func(r *Retryer) error {
		if s == nil {
			return errors.New("WithDeadLetter: the sink is nil")
		}
		r.sink = s
		return nil
	}
}

// WithCallerDeadLetter is the word that the caller of a Retryer of kind Event
// or Webhook routes exhausted work to a dead-letter queue by itself.
func WithCallerDeadLetter() Option {
	return func(r *Retryer) error {
		r.callerSink = true
		return nil
	}
}

// WithService names the service that makes the calls. Where the policy names an
// owner, only that service retries, so [New] refuses an owner without this
// option. An empty name says that the service is not known: it retries as the owner does.
func WithService(name string) Option {
	return func(r *Retryer) error {
		r.service, r.named = name, true
		return nil
	}
}

// WithHealthGate asks healthy before every retry whether the dependency looks well
// enough for one. It stands beside the gate of the policy, for other knowledge,
// as by package health/probe, and must not block.
func WithHealthGate(healthy func(now time.Time) bool) Option {
	return func(r *Retryer) error {
		r.healthy = healthy
		return nil
	}
}
