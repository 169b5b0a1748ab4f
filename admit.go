package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// This file ties the breaker, the bulkhead and the budget to the calls of a
// Retryer.

// Admit asks for the leave to make the attempt that s is about to make: after
// [Retryer.Next] has granted it and its wait is over. ReasonNone lets it go
// ahead; any other reason is a refusal, which durable callers answer by
// postponing. [Call] asks by itself.
func (r *Retryer) Admit(s *State, now time.Time) Reason {
	if r.breaker == nil {
		return ReasonNone
	}
	permit, ok := r.breaker.Allow(now)
	if !ok {
		return ReasonBreakerOpen
	}
	s.permit = permit
	return ReasonNone
}

// Withdraw ends an admitted attempt that was not made, or that says nothing
// about the dependency.
func (r *Retryer) Withdraw(s *State) {
	if r.breaker != nil {
		r.breaker.Cancel(s.permit)
	}
}

// Succeeded tells the good end of an admitted attempt that took the given time.
// [Call.Succeed] tells by itself.
func (r *Retryer) Succeeded(s *State, took time.Duration, now time.Time) {
	if r.pace != nil {
		r.pace.ended(breaker.Good, now)
	}
	if r.breaker == nil {
		return
	}
	o := breaker.Good
	if slow := r.policy.Breaker.SlowCall; slow > 0 && took >= slow {
		o = breaker.Slow
	}
	r.breaker.Record(s.permit, o, now)
}

// admitCall asks, from the outside in, whether the call may begin: enough time,
// a place in the bulkhead, a breaker that is not open.
func (r *Retryer) admitCall(ctx context.Context, c *Call) Reason {
	// The default MinAttempt is about retries; a caller in a hurry may still
	// try once.
	if least := r.given.MinAttempt; least > 0 {
		if d, ok := ctx.Deadline(); ok && d.Sub(c.Start()) < least {
			return ReasonDeadline
		}
	}
	if r.bulkhead != nil {
		if !r.bulkhead.Enter() {
			if r.breaker != nil {
				permit, _ := r.breaker.Glance()
				r.breaker.Record(permit, breaker.Failed, c.Start())
			}
			return ReasonBulkheadFull
		}
		c.entered = true
	}
	if r.breaker == nil {
		return ReasonNone
	}
	var closed bool
	if c.State.permit, closed = r.breaker.Glance(); closed {
		return ReasonNone
	}
	return r.Admit(&c.State, c.Start())
}

// turnAway ends a call that was not let in.
func (r *Retryer) turnAway(ctx context.Context, c *Call, why Reason) error {
	c.leave()
	f := Failure{Class: ClassTerminal, Type: why.String()}
	if len(r.observers.stop) > 0 {
		c.stopped(ctx, Decision{Reason: why, Class: f.Class}, f, c.Start(), 0)
	}
	e := c.Err(Decision{Reason: why, Class: f.Class}, f)
	e.Attempts = 0
	return e
}

// leave gives the place in the bulkhead back. It may be called more than once.
func (c *Call) leave() {
	if c.entered {
		c.entered = false
		c.r.bulkhead.Leave()
	}
}

// decide adds to s what this Retryer knows of the moment, next to what the
// caller says, and decides. The facts do not stay in s: at the next failure
// they may be others.
func (r *Retryer) decide(s *State, f *Failure, now time.Time) Decision {
	was, unhealthy, notOwner := s.Breaker, s.Unhealthy, s.NotOwner
	if r.breaker != nil && r.breaker.State() == breaker.Open {
		s.Breaker = breaker.Open
	}
	if r.gate != nil && !r.gate.Healthy(r.dependency, now) {
		s.Unhealthy = true
	}
	if r.policy.Owner != "" && r.service != "" && r.policy.Owner != r.service {
		s.NotOwner = true
	}
	d := r.policy.decide(s, f, now, r.draw)
	s.Breaker, s.Unhealthy, s.NotOwner = was, unhealthy, notOwner
	return d
}

// report tells the breaker and the pace of a failed attempt.
func (r *Retryer) report(s *State, f *Failure, now time.Time) {
	o, counts := f.Outcome()
	if r.pace != nil && counts {
		r.pace.ended(o, now)
	}
	switch {
	case r.breaker == nil:
	case counts && o == breaker.Failed && f.Class == ClassThrottled:
		r.breaker.Record(s.permit, breaker.Limited, now)
	case counts:
		r.breaker.Record(s.permit, o, now)
	default:
		r.breaker.Cancel(s.permit)
	}
}

// Outcome returns what a circuit breaker makes of f; counts is false for a
// failure that says nothing about the dependency.
func (f *Failure) Outcome() (o breaker.Outcome, counts bool) {
	switch {
	case f.Class == ClassSuccess, answered(f) && !dependencyFailed(f):
		return breaker.Good, true
	case dependencyFailed(f):
		return breaker.Failed, true
	default:
		return breaker.Good, false
	}
}

// dependencyFailed reports whether f speaks against the dependency: 5xx, 429,
// timeouts and broken connections do (INTG-STD-033), and what gRPC has for the
// 5xx that are not retried.
func dependencyFailed(f *Failure) bool {
	switch f.Type {
	case "grpc_INTERNAL", "grpc_UNKNOWN", "grpc_DATA_LOSS":
		return true
	}
	return f.Class.Retryable() || f.Class == ClassCertificate || group(f.Type) == "http_5xx"
}

// answered reports whether f is an answer that shows the dependency at work,
// though not the wished one: the other 4xx.
func answered(f *Failure) bool {
	return f.Class == ClassTerminal || f.Class == ClassUnauthorized
}

// spend asks the budget for a granted retry, and then the pace of durable work.
func (r *Retryer) spend(d Decision, now time.Time) Decision {
	if r.budget.Spend(now, d.Cost) {
		return d
	}
	if r.breaker != nil {
		r.breaker.BudgetRefused(now)
	}
	if r.pace != nil && r.pace.take(now) {
		d.Paced = true
		return d
	}
	return d.stop(ReasonBudget)
}

func (r *Retryer) breakerMoved(e breaker.Transition) {
	e.Dependency = r.dependency
	if r.pace != nil && e.To == breaker.Closed {
		r.pace.forget()
	}
	for _, o := range r.observers.breaker {
		o.BreakerMoved(e)
	}
}

// Breaker returns the circuit breaker, or nil when the policy has none.
func (r *Retryer) Breaker() *breaker.Breaker { return r.breaker }

// Bulkhead returns the bulkhead, or nil when the policy sets no bound.
func (r *Retryer) Bulkhead() *breaker.Bulkhead { return r.bulkhead }
