package forbear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
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
	ratio      *budget.Ratio // budget, when it is of the default kind
	outcomes   outcomeBudget // budget, when it cares how calls end
	gate       HealthGate
	breaker    *breaker.Breaker  // nil when the policy has none
	bulkhead   *breaker.Bulkhead // nil when the policy sets no bound
	pace       *pace             // nil for calls that somebody waits for
	service    string

	layeredOnce  sync.Once
	layeredSends atomic.Int64

	observers   observers
	observed    bool
	correlate   func(context.Context) string
	classifiers []Classifier
	waivers     []Waiver
	sink        DeadLetterSink
	callerSink  bool
	draw        func() float64
}

// New returns a Retryer for the named dependency. It refuses a policy outside
// the standard's ranges, naming every field, value and rule, unless a waiver
// covers it; and a durable kind without a dead-letter sink.
func New(dependency string, p Policy, opts ...Option) (*Retryer, error) {
	r, err := build(dependency, p, opts)
	if err == nil {
		r.attach()
	}
	return r, err
}

func build(dependency string, p Policy, opts []Option) (*Retryer, error) {
	r := &Retryer{dependency: dependency, given: p, policy: p.WithDefaults(), draw: rand.Float64}
	var errs []error
	if dependency == "" {
		errs = append(errs, errors.New("dependency has no name"))
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(r); err != nil {
			errs = append(errs, fmt.Errorf("dependency %q: %w", dependency, err))
		}
	}
	if v := r.unwaived(p.Violations()); len(v) > 0 {
		errs = append(errs, &policyError{dependency, v})
	}
	if p.Kind.Durable() && r.sink == nil && !r.callerSink {
		errs = append(errs, fmt.Errorf("policy %q: kind %s needs a dead-letter sink (R-8): use WithDeadLetter or WithCallerDeadLetter", dependency, p.Kind))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if r.budget == nil {
		r.budget = budget.NewRatio(r.policy.Budget)
	}
	r.ratio, _ = r.budget.(*budget.Ratio)
	if r.breaker == nil && !p.Breaker.Disabled {
		r.breaker = breaker.New(r.policy.Breaker, r.breakerMoved)
	}
	if p.Kind.paced() {
		r.pace = &pace{}
	}
	if p.MaxConcurrent > 0 {
		r.bulkhead = breaker.NewBulkhead(p.MaxConcurrent)
	}
	r.outcomes, _ = r.budget.(outcomeBudget)
	if !r.observed {
		_ = r.observers.add(LogObserver{})
	}
	return r, nil
}

// attach tells the observers that ask for it of a Retryer that is in use.
func (r *Retryer) attach() {
	for _, o := range r.observers.attach {
		o.Attached(r)
	}
}

// Must returns r, or panics with err. It is for variables of package scope.
func Must(r *Retryer, err error) *Retryer {
	if err != nil {
		panic(err)
	}
	return r
}

func (r *Retryer) unwaived(found []*Violation) (left []*Violation) {
	now := time.Now()
	for _, v := range found {
		covered := false
		for _, w := range r.waivers {
			covered = covered || w.covers(v, r.dependency, now)
		}
		if !covered {
			left = append(left, v)
		}
	}
	return left
}

// Service returns the name given by [WithService], or "".
func (r *Retryer) Service() string { return r.service }

// Dependency returns the name of the dependency.
func (r *Retryer) Dependency() string { return r.dependency }

// Policy returns the policy with its defaults filled in.
func (r *Retryer) Policy() Policy { return r.policy }

// Level returns the reading of the budget.
func (r *Retryer) Level(now time.Time) budget.Level { return r.budget.Level(now) }

// Next decides what follows a failed attempt and commits it: it takes the
// retry's cost from the budget and advances s. Every live use of forbear goes
// through here, [Retryer.Do] and the protocol edges by way of [Call], the
// durable ones directly with the State that they persist.
//
// A retry that is granted and then not sent is given back with
// [Retryer.Refund].
func (r *Retryer) Next(s *State, f Failure, now time.Time) Decision {
	if s.Attempt = s.attempt(); s.Start.IsZero() {
		s.Start = now
	}
	if f.Class == ClassDNS {
		s.DNSFailures++
	}
	r.report(s, &f, now)
	d := r.decide(s, &f, now)
	if r.outcomes != nil && d.Class.Retryable() {
		r.outcomes.Failed(now)
	}
	return r.commit(s, d, now)
}

// commit takes the cost of a granted retry from the budget and advances s.
func (r *Retryer) commit(s *State, d Decision, now time.Time) Decision {
	if d.Retry {
		d = r.spend(d, now)
	}
	*s = s.After(d)
	return d
}

// Refund gives back a granted retry that was not sent.
func (r *Retryer) Refund(d Decision, now time.Time) {
	switch {
	case d.Paced:
		r.pace.giveBack()
	case d.Retry:
		r.budget.Refund(now, d.Cost)
	}
}

// outcomeBudget is a [budget.Budget] that also learns how calls end; token
// buckets live on that.
type outcomeBudget interface {
	budget.Budget
	// Failed notes a failed attempt of a retryable kind, before Spend.
	Failed(now time.Time)
	// Succeeded notes a successful call. retries is the number of its retries
	// and last the cost of the last one.
	Succeeded(now time.Time, retries int, last budget.Cost)
}

func costOf(c Class) budget.Cost {
	switch c {
	case ClassTimeout:
		return budget.Timeout
	case ClassThrottled:
		return budget.Throttled
	default:
		return budget.Transient
	}
}
