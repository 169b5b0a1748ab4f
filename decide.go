package forbear

import (
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/errtype"
)

// Decide decides whether, when and why a failed attempt may be followed by
// another, when nothing is known of the moment: see [Policy.Decide].
func Decide(p *Policy, s State, f Failure, now time.Time, draw func() float64) Decision {
	return p.Decide(s, Facts{}, f, now, draw)
}

// Decide decides whether, when and why a failed attempt may be followed by
// another. It is a pure function: the time and the randomness are arguments,
// draw returns numbers in [0, 1), nothing is kept.
//
// The questions come in a fixed order, and the first that says stop wins:
// canceled? class terminal? replayable and keyed? breaker and health? retries
// left? does the wait fit into what is left of the deadline? budget?
func (p *Policy) Decide(s State, known Facts, f Failure, now time.Time, draw func() float64) Decision {
	q := p.WithDefaults()
	return q.decide(&s, &known, &f, now, draw)
}

// decide is Decide for a policy whose defaults are filled in.
func (p *Policy) decide(s *State, known *Facts, f *Failure, now time.Time, draw func() float64) Decision {
	d := Decision{Class: p.classOf(f), Cost: costOf(f.Class)}
	if r := p.refusal(s, known, f, &d); r != ReasonNone {
		return d.stop(r)
	}
	if d.Reason == ReasonNone {
		d.Reason = ReasonRetryable
	}
	if d = p.schedule(d, s, f.Hint, now, draw); d.Retry && known.BudgetSpent && !f.free(d.Reason) {
		return d.stop(ReasonBudget)
	}
	return d
}

// refusal asks the questions in their order; the first that objects wins.
func (p *Policy) refusal(s *State, known *Facts, f *Failure, d *Decision) Reason {
	if r := askCanceled(f, d); r != ReasonNone {
		return r
	}
	if r := askClass(p, s, known, f, d); r != ReasonNone {
		return r
	}
	if r := askReplay(p, s, f); r != ReasonNone {
		return r
	}
	if r := askHealth(known); r != ReasonNone {
		return r
	}
	return askCount(p, s, known, f, d)
}

func askCanceled(f *Failure, d *Decision) Reason {
	if d.Class != ClassCanceled {
		return ReasonNone
	}
	switch f.Type {
	case errtype.CallerDeadline:
		return ReasonDeadline
	case errtype.RequestBody: // it has not gone, but its part has failed
		return ReasonTerminal
	}
	return ReasonCanceled
}

func askClass(p *Policy, s *State, known *Facts, f *Failure, d *Decision) Reason {
	switch {
	case d.Class == ClassSuccess:
		return ReasonSuccess
	case d.Class == ClassCertificate:
		return ReasonCertificate
	case d.Class == ClassTerminal:
		return ReasonTerminal
	case d.Class == ClassUnauthorized:
		if !s.Refreshable || s.Refreshes > 0 {
			return ReasonUnauthorized
		}
		d.Reason = ReasonRefresh
	case !d.Class.Retryable():
		return ReasonUnknown
	}
	if f.Hint.Stop {
		return ReasonServerStop
	}
	// What one layer has given up, a synchronous one above does not try
	// again; a durable one may come back later.
	if known.ExhaustedBelow && !p.Kind.Durable() {
		return ReasonExhaustedBelow
	}
	if (f.Type == errtype.Resend || f.Disowned) && s.Resends == 0 {
		d.Reason = ReasonResend
	}
	return ReasonNone
}

func askReplay(p *Policy, s *State, f *Failure) Reason {
	safe := f.Unsent && p.RetryUnsent || f.Disowned && s.Resends == 0
	if s.NeedsKey && (p.Keys == KeyRefuse || !s.keyed()) && !safe {
		return ReasonNoKey
	}
	if s.Unreplayable {
		return ReasonNotReplayable
	}
	return ReasonNone
}

func askHealth(known *Facts) Reason {
	if known.Breaker == breaker.Open {
		return ReasonBreakerOpen
	}
	if known.Unhealthy {
		return ReasonUnhealthy
	}
	return ReasonNone
}

func askCount(p *Policy, s *State, known *Facts, f *Failure, d *Decision) Reason {
	switch limit := p.limit(s, f.Hint); {
	case known.Inner:
		return ReasonInner
	case known.NotOwner:
		return ReasonNotOwner
	case d.Reason == ReasonRefresh:
		return ReasonNone // outside the count, inside the deadline
	case limit <= 0:
		return ReasonDisabled
	case s.retries() >= limit:
		return ReasonExhausted
	}
	if d.Class == ClassDNS {
		failed := s.DNSFailures
		if failed == 0 {
			failed = s.attempt()
		}
		if failed >= 2 {
			return ReasonDNSLimit
		}
	}
	return ReasonNone
}
