package budget

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
)

// TokenBucket allows bursts of retries and then a steady rate: each retry takes
// one token, and tokens come back with time. The budget article's example is
// 200 tokens, 20 a second. It does not know how many requests there are, so it
// bounds a rate, not a share: R-7 wants a [Ratio] beside it.
type TokenBucket struct {
	mu       sync.Mutex
	capacity float64
	rate     float64 // tokens a second
	tokens   float64
	last     time.Time
}

// NewTokenBucket returns a full bucket. It panics when perSecond is NaN or infinite.
func NewTokenBucket(capacity int, perSecond float64) *TokenBucket {
	finite.Must("budget: tokens per second", perSecond)
	return &TokenBucket{capacity: float64(capacity), rate: perSecond, tokens: float64(capacity)}
}

// refill is called with b.mu held.
func (b *TokenBucket) refill(now time.Time) {
	if d := now.Sub(b.last); !b.last.IsZero() && d > 0 {
		b.tokens = min(b.capacity, b.tokens+d.Seconds()*b.rate)
	}
	if now.After(b.last) {
		b.last = now
	}
}

// Request implements [Budget]; requests do not matter to a bucket.
func (b *TokenBucket) Request(time.Time) {}

// Spend implements [Budget].
func (b *TokenBucket) Spend(now time.Time, _ Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	// A hair under one token is one token: the rest is rounding.
	if b.tokens < 1-1e-9 {
		return false
	}
	b.tokens = max(b.tokens-1, 0)
	return true
}

// Refund implements [Budget].
func (b *TokenBucket) Refund(now time.Time, _ Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.tokens = min(b.capacity, b.tokens+1)
}

// Level implements [Budget].
func (b *TokenBucket) Level(now time.Time) Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	return Level{Used: b.capacity - b.tokens, Allowed: b.capacity}
}
