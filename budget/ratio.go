package budget

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
	"github.com/forbear-go/forbear/internal/window"
)

// Ratio is the rolling-window budget of R-7. Its success path, Request,
// takes no lock and allocates nothing. Make it with [NewRatio].
type Ratio struct {
	policy  Policy
	initial *window.Sharded

	mu      sync.Mutex // the retry path: check and take in one step
	retries *window.Exact
}

// NewRatio returns a budget for one dependency. Zero fields of p are
// taken as they are; [Policy.WithDefaults] fills them in. It panics when Ratio or
// MaxMultiplier is NaN or infinite.
func NewRatio(p Policy) *Ratio {
	finite.Must("budget: ratio", p.Ratio)
	finite.Must("budget: max_multiplier", p.MaxMultiplier)
	return &Ratio{
		policy:  p,
		initial: window.NewSharded(p.Window),
		retries: window.NewExact(p.Window),
	}
}

// Policy returns b's policy.
func (b *Ratio) Policy() Policy { return b.policy }

// Request implements [Budget].
func (b *Ratio) Request(now time.Time) { b.initial.Add(now, 1) }

// RequestAt is Request for a time that is counted from the windows' epoch.
func (b *Ratio) RequestAt(since time.Duration) { b.initial.AddAt(since, 1) }

// Spend implements [Budget]. The cost does not matter to a ratio.
func (b *Ratio) Spend(now time.Time, _ Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := b.retries.Sum(now)
	// Below the floor it does not matter how many requests there were.
	if used >= int64(b.policy.MinRetries) && b.policy.Spent(b.initial.Sum(now), used) {
		return false
	}
	b.retries.Add(now, 1)
	return true
}

// Refund implements [Budget].
func (b *Ratio) Refund(now time.Time, _ Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retries.Remove(now)
}

// Level implements [Budget]: retries in the window over retries allowed.
func (b *Ratio) Level(now time.Time) Level {
	b.mu.Lock()
	used := b.retries.Sum(now)
	b.mu.Unlock()
	return Level{Used: float64(used), Allowed: float64(b.policy.Allowed(b.initial.Sum(now)))}
}

// Allowed returns how many retries may be sent in a window with the given
// number of initial requests. b's zero fields are taken as they are: see
// [Policy.WithDefaults].
func (b Policy) Allowed(initial int64) int64 {
	// Parts per million keep 0.1 x 30 at 3.
	earns, costs := b.parts()
	return max(share(max(initial, 0), earns, costs, b.RoundUp), int64(b.MinRetries))
}

// parts returns what one initial request earns and what one retry costs, in
// the same unit.
func (b Policy) parts() (earns, costs int64) {
	const million, most = 1_000_000, 1_000_000
	if b.Ratio > 0 { // which NaN is not
		earns = int64(min(b.Ratio, most)*million + 0.5)
	}
	if costs = million; b.Of == OfTotal {
		costs -= earns // r / (initial + r) <= ratio
	}
	return earns, costs
}

// share returns n x earns / costs. What is too large to be counted is the largest
// count there is.
func share(n, earns, costs int64, roundUp bool) int64 {
	if costs <= 0 {
		return math.MaxInt64
	}
	high, low := bits.Mul64(uint64(n), uint64(earns))
	if roundUp {
		var carry uint64
		low, carry = bits.Add64(low, uint64(costs-1), 0)
		high += carry
	}
	if high >= uint64(costs) { // the quotient needs more than 64 bits
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(costs))
	return int64(min(quotient, math.MaxInt64))
}

// Spent reports whether no retry is left in a window with so many initial requests
// and retries.
func (b Policy) Spent(initial, retries int64) bool { return retries >= b.Allowed(initial) }

// MaxAmplification returns what the budget lets the load grow to, as a multiple
// of the initial requests, leaving aside the floor for quiet clients.
func (b Policy) MaxAmplification() float64 {
	if b.Of == OfTotal {
		return 1 / (1 - b.Ratio)
	}
	return 1 + b.Ratio
}

// AllowedEach returns how many retries n instances may send in a window when each
// has a budget of b's of its own and they have so many initial requests together,
// however these are spread: the share of all requests, or the floor where that is more,
// and n-1 floors, since the instances that make hardly a call keep theirs. A [Fleet] allows
// [Policy.Allowed] of the same number.
func (b Policy) AllowedEach(n int, initial int64) int64 {
	one, floors := b.Allowed(initial), int64(max(n-1, 0))*int64(max(b.MinRetries, 0))
	if one > math.MaxInt64-floors {
		return math.MaxInt64
	}
	return one + floors
}

// Worst returns what one client's load can grow to at most, as a multiple of its
// initial requests, when each call has at most so many retries: the floor included,
// which a client with a single request in a window may spend on that one.
func (b Policy) Worst(retries int) float64 {
	return 1 + min(float64(retries), max(float64(b.Allowed(1)), b.MaxAmplification()-1))
}
