package breaker

import "time"

// This file says how a breaker moves between its states, and for how long it stays open.
// All of it is called with b.mu held.

// open opens the breaker: at first for the shortest time, for as long once more
// after a probing that failed, for twice as long after each further one, up to
// the policy's, and for the shortest again when it has not opened for a minute.
func (b *Breaker) open(cause Cause, now time.Time, actor string) {
	switch {
	case cause == CauseProbe:
		if b.failed++; b.failed > 1 {
			b.wait = min(2*b.wait, b.policy.OpenFor)
		}
	case b.wait == 0, now.Sub(b.openedAt) > time.Minute:
		b.wait = b.patience.least
	}
	b.openedAt = now
	b.patience.since = time.Time{}
	b.troubled.Store(false)
	b.move(Open, cause, now, actor)
}

func (b *Breaker) close(cause Cause, now time.Time, actor string) {
	b.closedAt, b.failed = now, 0
	b.move(Closed, cause, now, actor)
}

func (b *Breaker) move(to State, cause Cause, now time.Time, actor string) {
	generation, from := b.load()
	seen := b.window.Load().latest()
	e := Transition{
		From: from, To: to, Cause: cause, Actor: actor, At: now, BudgetSpent: b.BudgetSpent(now),
		Calls: int(seen.calls), FailureRate: seen.rate(seen.failed), SlowRate: seen.rate(seen.slow),
	}
	switch to {
	case Open:
		e.OpenFor = b.wait
	case Closed:
		b.window.Store(newOutcomes(b.policy))
	}
	b.cause = cause
	b.word.Store((generation+1)<<2 | uint64(to))
	if b.moved != nil {
		b.moved(e)
	}
}
