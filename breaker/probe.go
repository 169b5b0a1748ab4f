package breaker

import "time"

// This file lets single attempts through a breaker that was open, and judges by them.

func (b *Breaker) allowProbe(now time.Time) (Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	generation, s := b.load()
	switch {
	case s == Closed:
		return Permit{generation: generation}, true
	case s == Open && !b.forced && now.Sub(b.openedAt) >= b.wait:
		b.move(HalfOpen, CauseWaited, now, "")
		b.permits, b.succeeded = b.policy.Probes, 0
		generation, s = b.load()
	}
	if s == HalfOpen && b.permits == 0 && b.overdue(now) <= 0 {
		b.permits = b.policy.Probes - b.succeeded
		b.round++
	}
	if s != HalfOpen || b.permits == 0 {
		return Permit{}, false
	}
	b.permits--
	b.probedAt = now
	return Permit{generation: generation, round: b.round, Probe: true}, true
}

// overdue returns how long it is until the places of the probes that are under way
// are given again: a probe that hangs must not hold the breaker half-open for
// ever. Until then it has as long as an open breaker waits at most, or as a call
// may take. It is called with b.mu held.
func (b *Breaker) overdue(now time.Time) time.Duration {
	return b.probedAt.Add(max(b.policy.OpenFor, b.policy.SlowCall)).Sub(now)
}

func (b *Breaker) recordProbe(p Permit, o Outcome, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation, s := b.load(); generation != p.generation || s != HalfOpen {
		return
	}
	if o.plain() == Failed {
		b.open(CauseProbe, now, "")
		return
	}
	if b.succeeded++; b.succeeded >= b.policy.Probes {
		b.patience.recovered(b.openedAt, now)
		b.close(CauseRecovered, now, "")
		return
	}
	b.permits = min(b.permits, b.policy.Probes-b.succeeded) // fewer when an overdue one succeeded
}
