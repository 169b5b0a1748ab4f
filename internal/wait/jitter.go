package wait

import (
	"math/rand/v2"
	"time"
)

// Jitter draws a wait with full jitter: uniform in [0, d], 0 for a negative d
// . Its mean is d/2, so a poll that is to come every d on average draws from
// 2d.
func Jitter(d time.Duration) time.Duration { return rand.N(max(d, 0) + 1) }

// Backoff draws waits with full jitter under a ceiling that doubles from Base to
// Cap. The zero value draws 0. It is not safe for concurrent use.
type Backoff struct {
	Base, Cap time.Duration
	n         int
}

// Next draws the next wait.
func (b *Backoff) Next() time.Duration {
	ceiling := min(b.Base<<b.n, b.Cap)
	if ceiling < b.Cap {
		b.n++ // stops growing at the cap, so that the shift never overflows
	}
	return Jitter(ceiling)
}

// Reset starts again from Base, after a success.
func (b *Backoff) Reset() { b.n = 0 }
