package forbear

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/health"
)

// New returns a Retryer for the named dependency. It refuses a policy outside
// the standard's ranges, naming every field, value and rule, unless a waiver
// covers it; and a durable kind without a dead-letter sink.
func New(dependency string, p Policy, opts ...Option) (*Retryer, error) {
	r, err := build(dependency, p, opts)
	if err == nil {
		for _, o := range r.observers.list {
			if o.Attached != nil {
				o.Attached(r)
			}
		}
	}
	return r, err
}

func build(dependency string, p Policy, opts []Option) (*Retryer, error) {
	r := &Retryer{dependency: dependency, given: p, policy: p.WithDefaults(), rand: rand.Float64}
	var errs []error
	if dependency == "" {
		errs = append(errs, errors.New("the dependency has no name: pass one to New, such as \"payments\""))
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(r); err != nil {
			errs = append(errs, fmt.Errorf("dependency %q: %w", dependency, err))
		}
	}
	if v := r.unwaived(p.violations()); len(v) > 0 {
		errs = append(errs, &policyError{dependency, v})
	}
	if p.Kind.Durable() && r.sink == nil && !r.callerSink {
		errs = append(errs, fmt.Errorf("policy %q: kind %s needs a dead-letter sink (R-8): pass WithDeadLetter, or WithCallerDeadLetter where the caller has one", dependency, p.Kind))
	}
	if p.Owner != "" && !r.named {
		errs = append(errs, fmt.Errorf("policy %q: owner %q needs the name of this service to have an effect (R-7): add WithService, or leave Owner out", dependency, p.Owner))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if r.budget == nil {
		r.budget = budget.NewRatio(r.policy.Budget)
	}
	r.ratio, _ = r.budget.(*budget.Ratio)
	if b, ok := r.budget.(interface{ Policy() budget.Policy }); ok {
		p := b.Policy()
		r.shares = &p
	}
	if r.breaker == nil && !p.Breaker.Disabled {
		r.breaker = breaker.New(r.policy.Breaker, r.breakerMoved)
	}
	if p.Health.Enabled() {
		r.gate = health.New(r.policy.Health)
	}
	if p.Kind.earns() {
		r.earned = &earnings{}
	}
	if p.MaxConcurrent > 0 {
		r.bulkhead = breaker.NewBulkhead(p.MaxConcurrent)
	}
	r.outcomes, _ = r.budget.(outcomeBudget)
	if !r.observed {
		r.observers.add(LogObserver(nil, nil))
	}
	return r, nil
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

// Set owns the Retryers of a service: one per dependency, each with its own
// budget. It is safe for concurrent use.
type Set struct {
	service  string
	fallback Policy
	opts     []Option

	mu       sync.RWMutex
	retryers map[string]*Retryer
}

// NewSet returns a Set for the named service, as by [WithService]. Dependencies that
// are not configured by [Set.Configure] use the fallback policy. The options apply to
// every Retryer.
func NewSet(service string, fallback Policy, opts ...Option) (*Set, error) {
	opts = append([]Option{WithService(service)}, opts...)
	// Build one now, so that a bad fallback is found here and not on first use.
	if _, err := build("default", fallback, opts); err != nil {
		return nil, fmt.Errorf("set %q: %w", service, err)
	}
	return &Set{service: service, fallback: fallback, opts: opts, retryers: map[string]*Retryer{}}, nil
}

// Configure sets the policy of one dependency. A Retryer that was handed out
// before keeps its old policy.
func (s *Set) Configure(dependency string, p Policy, opts ...Option) error {
	r, err := New(dependency, p, append(s.opts[:len(s.opts):len(s.opts)], opts...)...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retryers[dependency] = r
	return nil
}

// Retryer returns the Retryer of a dependency, the same one each time. The
// names come from code or configuration, never from requests: each new one
// stays. An empty name is that of the dependency "default".
func (s *Set) Retryer(dependency string) *Retryer {
	if dependency == "" {
		dependency = "default"
	}
	s.mu.RLock()
	r := s.retryers[dependency]
	s.mu.RUnlock()
	if r != nil {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r = s.retryers[dependency]; r == nil {
		// The fallback was accepted in NewSet, under the same options.
		r = Must(New(dependency, s.fallback, s.opts...))
		s.retryers[dependency] = r
	}
	return r
}
