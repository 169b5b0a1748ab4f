package forbear

import (
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// Decide decides whether, when and why a failed attempt may be followed by
// another. It is a pure function: the time and the randomness are arguments,
// draw returns numbers in [0, 1), nothing is kept.
//
// The questions come in a fixed order, and the first that says stop wins:
// canceled? class terminal? replayable and keyed? breaker and health? retries
// left? does the wait fit into what is left of the deadline? budget?
func Decide(p *Policy, s State, f Failure, now time.Time, draw func() float64) Decision {
	q := p.WithDefaults()
	return q.decide(&s, &f, now, draw)
}

// decide is Decide for a policy whose defaults are filled in.
func (p *Policy) decide(s *State, f *Failure, now time.Time, draw func() float64) Decision {
	d := Decision{Class: p.classOf(f), Cost: costOf(f.Class)}
	if r := p.refusal(s, f, &d); r != reason.None {
		return d.stop(r)
	}
	if d.Reason == reason.None {
		d.Reason = reason.Retryable
	}
	w := p.span(s, f.Hint, d.Reason)
	room, r := askTime(p, s, f.Hint, w, now)
	if r != reason.None {
		return d.stop(r)
	}
	if s.BudgetSpent && !f.free(d.Reason) {
		return d.stop(reason.Budget)
	}
	return d.wait(w, f.Hint, room, draw)
}

// refusal asks the questions in their order; the first that objects wins.
func (p *Policy) refusal(s *State, f *Failure, d *Decision) Reason {
	if r := askCanceled(f, d); r != reason.None {
		return r
	}
	if r := askClass(p, s, f, d); r != reason.None {
		return r
	}
	if r := askReplay(p, s, f); r != reason.None {
		return r
	}
	if r := askHealth(s); r != reason.None {
		return r
	}
	return askCount(p, s, f, d)
}

func askCanceled(f *Failure, d *Decision) Reason {
	if d.Class != ClassCanceled {
		return reason.None
	}
	switch f.Type {
	case errtype.CallerDeadline:
		return reason.Deadline
	case errtype.RequestBody: // it has not gone, but its part has failed
		return reason.Terminal
	}
	return reason.Canceled
}

func askClass(p *Policy, s *State, f *Failure, d *Decision) Reason {
	switch {
	case d.Class == ClassSuccess:
		return reason.Success
	case d.Class == ClassCertificate:
		return reason.Certificate
	case d.Class == ClassTerminal:
		return reason.Terminal
	case d.Class == ClassUnauthorized:
		if !s.Refreshable || s.Refreshes > 0 {
			return reason.Unauthorized
		}
		d.Reason = reason.Refresh
	case !d.Class.Retryable():
		return reason.Unknown
	}
	if f.Hint.Stop {
		return reason.ServerStop
	}
	// What one layer has given up, a synchronous one above does not try
	// again; a durable one may come back later.
	if s.ExhaustedBelow && !p.Kind.Durable() {
		return reason.ExhaustedBelow
	}
	if s.Resends == 0 && f.Type == errtype.Resend || sendAnew(f, s) {
		d.Reason = reason.Resend
	}
	return reason.None
}

func askReplay(p *Policy, s *State, f *Failure) Reason {
	safe := f.Unsent && p.RetryUnsent || sendAnew(f, s)
	if s.NeedsKey && (p.Keys == KeyRefuse || !s.keyed()) && !safe {
		return reason.NoKey
	}
	if s.Unreplayable {
		return reason.NotReplayable
	}
	return reason.None
}

func askHealth(s *State) Reason {
	if s.Breaker == breaker.Open {
		return reason.BreakerOpen
	}
	if s.Unhealthy {
		return reason.Unhealthy
	}
	return reason.None
}

func askCount(p *Policy, s *State, f *Failure, d *Decision) Reason {
	switch limit := p.limit(s, f.Hint); {
	case s.Inner:
		return reason.Inner
	case s.NotOwner:
		return reason.NotOwner
	case d.Reason == reason.Refresh:
		return reason.None // outside the count, inside the deadline
	case limit <= 0:
		return reason.Disabled
	case s.retries() >= limit:
		return reason.Exhausted
	}
	if d.Class == ClassDNS {
		failed := s.DNSFailures
		if failed == 0 {
			failed = s.attempt()
		}
		if failed >= 2 {
			return reason.DNSLimit
		}
	}
	return reason.None
}

// askTime asks whether the wait and another attempt fit into what is left, and returns
// the room for the wait.
func askTime(p *Policy, s *State, h Hint, w span, now time.Time) (room time.Duration, why Reason) {
	left := p.remaining(s, now)
	if left <= p.MinAttempt { // before subtracting: left may be very negative
		return 0, reason.Deadline
	}
	room = left - p.MinAttempt
	switch {
	case h.Floor > room:
		return 0, reason.HintTooLong
	case w.low > room:
		return 0, reason.Deadline
	}
	return room, reason.None
}

// remaining returns what is left of the call: the earlier of the caller's
// deadline and the policy's total.
func (p *Policy) remaining(s *State, now time.Time) time.Duration {
	left := p.Total
	if !s.Start.IsZero() {
		// A start in the future comes from another machine's clock.
		left -= max(now.Sub(s.Start), 0)
	}
	if !s.Deadline.IsZero() {
		left = min(left, s.Deadline.Sub(now))
	}
	return left
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
