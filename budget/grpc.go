package budget

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
)

// GRPC is the retryThrottling of gRFC A6: each failed attempt of a
// retryable kind takes one token, each successful call gives back a fraction,
// and retries flow only while more than half of the tokens are there.
type GRPC struct {
	mu         sync.Mutex
	max, ratio int // in thousandths: 0.1 added ten times is exactly 1
	milli      int
}

// NewGRPC returns a full throttle. The documentation's example is
// 10 tokens and a ratio of 0.1, kept to three decimals. It panics when
// one of them is NaN or infinite.
func NewGRPC(maxTokens, tokenRatio float64) *GRPC {
	finite.Must("budget: maxTokens", maxTokens)
	finite.Must("budget: tokenRatio", tokenRatio)
	m := int(maxTokens*1000 + 0.5)
	return &GRPC{max: m, ratio: int(tokenRatio*1000 + 0.5), milli: m}
}

// Request implements [Budget].
func (b *GRPC) Request(time.Time) {}

// Spend implements [Budget]: it only looks, since the failure has paid.
func (b *GRPC) Spend(time.Time, Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.milli > b.max/2
}

// Refund implements [Budget]: nothing was taken.
func (b *GRPC) Refund(time.Time, Cost) {}

// Failed takes one token.
func (b *GRPC) Failed(time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.milli = max(b.milli-1000, 0)
}

// Succeeded gives back the ratio.
func (b *GRPC) Succeeded(time.Time, int, Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.milli = min(b.max, b.milli+b.ratio)
}

// Level implements [Budget]; the upper half is what may be spent.
func (b *GRPC) Level(time.Time) Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Level{Used: float64(b.max-b.milli) / 1000, Allowed: float64(b.max-b.max/2) / 1000}
}
