package budget

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
	"github.com/forbear-go/forbear/internal/window"
)

// Adaptive is the client-side throttle of the SRE book, chapter 21: the
// fewer requests the dependency accepts, the more are refused locally, with
// probability max(0, (requests - K x accepts) / (requests + 1)). A request that
// is refused locally counts as a request all the same.
//
// As a [Budget] it refuses retries, and counts a call that succeeds as
// accepted. [Adaptive.RejectProbability] is there for those who would
// refuse first attempts as well. It bounds no share of the load: R-7 wants a
// [Ratio] beside it.
type Adaptive struct {
	k    float64
	draw func() float64

	mu       sync.Mutex
	requests *window.Exact
	accepts  *window.Exact
}

// NewAdaptive returns a throttle with multiplier k over a rolling
// window. The book has 2 and two minutes; a smaller k refuses sooner.
// It panics when k is NaN or infinite.
func NewAdaptive(k float64, over time.Duration) *Adaptive {
	finite.Must("budget: multiplier k", k)
	return &Adaptive{
		k:        k,
		draw:     rand.Float64,
		requests: window.NewExact(over),
		accepts:  window.NewExact(over),
	}
}

// Request implements [Budget].
func (b *Adaptive) Request(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests.Add(now, 1)
}

// Accepted records that the dependency took a request, whatever its response.
func (b *Adaptive) Accepted(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepts.Add(now, 1)
}

// Spend implements [Budget]: the retry is a request, and refused by chance.
func (b *Adaptive) Spend(now time.Time, _ Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.probability(now)
	b.requests.Add(now, 1)
	return b.draw() >= p
}

// Refund implements [Budget].
func (b *Adaptive) Refund(now time.Time, _ Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests.Remove(now)
}

// Failed records nothing: the request is counted already.
func (b *Adaptive) Failed(time.Time) {}

// Succeeded records an accepted request.
func (b *Adaptive) Succeeded(now time.Time, _ int, _ Cost) { b.Accepted(now) }

// RejectProbability returns the chance, in [0, 1], that a request made now
// should be refused without being sent.
func (b *Adaptive) RejectProbability(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probability(now)
}

// probability is called with b.mu held.
func (b *Adaptive) probability(now time.Time) float64 {
	requests := float64(b.requests.Sum(now))
	return max(0, (requests-b.k*float64(b.accepts.Sum(now)))/(requests+1))
}

// Level implements [Budget]: the utilization is the chance of a refusal.
func (b *Adaptive) Level(now time.Time) Level {
	return Level{Used: b.RejectProbability(now), Allowed: 1}
}
