package breaker

import "time"

// This file is what others may do to a breaker: an operator by hand, and another
// process by its word.

// Force holds the breaker open or closed by hand, until [Breaker.Release]. The
// actor goes into the event and the log; authorization is the caller's duty.
func (b *Breaker) Force(to State, actor string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forced = true
	if _, from := b.load(); from == to {
		return
	}
	if to == Open {
		b.open(CauseOperator, now, actor)
	} else {
		b.close(CauseOperator, now, actor)
	}
}

// Follow opens a closed breaker on the word of another process, which has found the
// dependency down. From there it moves by itself. One that is held by hand stays.
func (b *Breaker) Follow(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, s := b.load(); s == Closed && !b.forced {
		b.open(CauseOtherProcess, now, "")
	}
}

// Release ends a [Breaker.Force]: the breaker moves by itself again, from where
// it stands.
func (b *Breaker) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forced = false
}

// Forced reports whether the breaker is held by hand.
func (b *Breaker) Forced() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.forced
}
