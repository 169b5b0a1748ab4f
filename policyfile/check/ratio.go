package check

import (
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/window"
)

// ratio is [budget.Ratio] for one goroutine and for times that never go back, as
// a simulation has them. It counts in the same windows and gives the same
// permissions, without locks and shards: a budget is asked at every failure, and
// adding up its windows each time would take longer than all the rest.
type ratio struct {
	policy  budget.Policy
	initial *window.Sharded
	retries *window.Exact
	// requests and used are the sums of the windows until the given end of a slot,
	// from the windows' epoch. fresh are the requests that initial has not seen yet.
	end            time.Duration
	requests, used int64
	fresh          uint32
}

// newRatio returns an unused budget. p has its defaults.
func newRatio(p budget.Policy) *ratio {
	return &ratio{policy: p, initial: window.NewSingle(p.Window), retries: window.NewExact(p.Window)}
}

// turn adds up the windows anew when a slot has begun: until the next one, sums
// change only by what is added.
func (b *ratio) turn(since time.Duration) {
	if since < b.end {
		return
	}
	if b.fresh > 0 {
		b.initial.AddAt(b.end-1, b.fresh)
		b.fresh = 0
	}
	width, now := window.Width(b.policy.Window), window.Epoch().Add(since)
	b.end = (since/width + 1) * width
	b.requests, b.used = b.initial.Sum(now), b.retries.Sum(now)
}

// request is Request for a time since the epoch.
func (b *ratio) request(since time.Duration) {
	b.turn(since)
	b.fresh++
	b.requests++
}

// spent reports whether no retry may be had at a time since the epoch.
func (b *ratio) spent(since time.Duration) bool {
	b.turn(since)
	return b.used >= int64(b.policy.MinRetries) && b.policy.Spent(b.requests, b.used)
}

// Request implements [budget.Budget].
func (b *ratio) Request(now time.Time) { b.request(now.Sub(window.Epoch())) }

// Spend implements [budget.Budget].
func (b *ratio) Spend(now time.Time, _ budget.Cost) bool {
	if b.spent(now.Sub(window.Epoch())) {
		return false
	}
	b.retries.Add(now, 1)
	b.used++
	return true
}

// Refund implements [budget.Budget].
func (b *ratio) Refund(now time.Time, _ budget.Cost) {
	b.turn(now.Sub(window.Epoch()))
	b.retries.Remove(now)
	b.used = b.retries.Sum(now)
}

// Level implements [budget.Budget].
func (b *ratio) Level(now time.Time) budget.Level {
	b.turn(now.Sub(window.Epoch()))
	return budget.Level{Used: float64(b.used), Allowed: float64(b.policy.Allowed(b.requests))}
}
