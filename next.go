package forbear

import (
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// Next decides what follows a failed attempt and commits it: it takes the
// retry's cost from the budget and advances s. Every live use of forbear goes
// through here, [Retryer.Do] and the protocol edges by way of edge.Call, work
// that survives a restart by way of edge.DurableCall.
//
// A retry that is granted and then not sent is given back with edge.Refund.
func (r *Retryer) Next(s *State, f Failure, now time.Time) Decision {
	return r.next(s, breaker.Permit{}, &f, now)
}

// next is Next for an attempt that had a permit.
func (r *Retryer) next(s *State, permit breaker.Permit, f *Failure, now time.Time) Decision {
	if f.Class == ClassDNS {
		s.DNSFailures++
	}
	r.record(permit, f, now)
	return r.decide(s, f, now, true)
}

// decide decides about a failure and commits the decision. first says that the
// failure is a new one, not one whose retry was postponed.
func (r *Retryer) decide(s *State, f *Failure, now time.Time, first bool) Decision {
	if s.Attempt = s.attempt(); s.Start.IsZero() {
		s.Start = now
	}
	known := r.moment(*s, now)
	d := r.policy.decide(&known, f, now, r.rand)
	if first && r.outcomes != nil && d.Class.Retryable() && f.Type != errtype.InProgress {
		r.outcomes.Failed(now)
	}
	if d.Retry {
		d = r.spend(d, f, now)
	}
	*s = s.After(d)
	return d
}

// spend asks the budget for a granted retry, and then what durable work has earned.
func (r *Retryer) spend(d Decision, f *Failure, now time.Time) Decision {
	if !f.asked() && r.budget.Spend(now, d.Cost) {
		return d
	}
	if f.free(d.Reason) {
		d.free = true
		return d
	}
	if r.breaker != nil {
		r.breaker.BudgetRefused(now)
	}
	if r.earned != nil && r.earned.take(now) {
		d.Paced = true
		return d
	}
	d = d.stop(reason.Budget)
	d.Level = r.budget.Level(now)
	return d
}

// refund gives back a granted retry that was not sent.
func (r *Retryer) refund(d Decision, now time.Time) {
	switch {
	case d.free:
	case d.Paced:
		r.earned.giveBack()
	case d.Retry:
		r.budget.Refund(now, d.Cost)
	}
}

// admit asks the breaker for the leave to make an attempt.
func (r *Retryer) admit(now time.Time) (breaker.Permit, Reason) {
	if r.breaker == nil {
		return breaker.Permit{}, reason.None
	}
	permit, ok := r.breaker.Allow(now)
	if !ok {
		return permit, reason.BreakerOpen
	}
	return permit, reason.None
}

// withdraw ends an admitted attempt that was not made, or that says nothing about
// the dependency.
func (r *Retryer) withdraw(permit breaker.Permit) {
	if r.breaker != nil {
		r.breaker.Cancel(permit)
	}
}

// record lets the earnings, the health gate and the breaker count a failed attempt,
// unless another dependency has failed.
func (r *Retryer) record(permit breaker.Permit, f *Failure, now time.Time) {
	o, counts := f.outcome()
	counts = counts && r.elsewhere(f.Err) == nil
	if r.earned != nil && counts {
		r.earned.ended(o, now)
	}
	if r.gate != nil && counts {
		r.gate.Record(o != breaker.Failed, now)
	}
	switch {
	case r.breaker == nil:
	case counts && o == breaker.Failed && f.Class == ClassThrottled:
		r.breaker.Record(permit, breaker.Limited, now)
	case counts:
		r.breaker.Record(permit, o, now)
	default:
		r.breaker.Cancel(permit)
	}
}

// recordGood lets them count a good attempt that took the given time.
func (r *Retryer) recordGood(permit breaker.Permit, took time.Duration, now time.Time) {
	if r.earned != nil {
		r.earned.ended(breaker.Good, now)
	}
	if r.gate != nil {
		r.gate.Record(true, now)
	}
	if r.breaker == nil {
		return
	}
	o := breaker.Good
	if r.slow(took) {
		o = breaker.Slow
	}
	r.breaker.Record(permit, o, now)
}

// moment returns s with what r knows of the moment.
func (r *Retryer) moment(s State, now time.Time) State {
	if r.breaker != nil && r.breaker.State() == breaker.Open {
		s.Breaker = breaker.Open
	}
	s.Unhealthy = s.Unhealthy || !r.looksHealthy(now)
	s.NotOwner = s.NotOwner || r.policy.Owner != "" && r.service != "" && r.policy.Owner != r.service
	return s
}

// looksHealthy asks the policy's health gate and the caller's. Only retries are
// asked about: first attempts continue, so that the gates see a recovery.
func (r *Retryer) looksHealthy(now time.Time) bool {
	return (r.gate == nil || r.gate.Healthy(now)) && (r.healthy == nil || r.healthy(now))
}

// reading reads the health gates, the policy's and the caller's; ok is false where
// there is none. It is for metrics and admin pages: a caller learns of a closed gate
// by the reason of a refusal.
func (r *Retryer) reading(now time.Time) (reading health.Reading, ok bool) {
	if r.gate == nil && r.healthy == nil {
		return reading, false
	}
	reading.Healthy = r.looksHealthy(now)
	if r.gate != nil {
		reading.Rate, reading.Counted = r.gate.Rate(now), true
	}
	return reading, true
}
