package forbear_test

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/budget"
)

// Two budgets of other clients, for the engine: one that cares how calls end and what the
// last retry cost, and one that holds a reserve. The shared traces hold them.

// awsQuota is the retry quota of the AWS SDKs' standard mode: a bucket that
// each retry draws from by kind, that a success after a retry pays back by the
// last retry's cost, and that a success at first try raises by one.
type awsQuota struct {
	mu       sync.Mutex
	capacity int
	costs    awsCosts
	tokens   int
}

// awsCosts are the tokens that one retry draws from an [awsQuota], by the kind
// of the failure before it.
type awsCosts struct{ Transient, Timeout, Throttled int }

func (c awsCosts) of(kind budget.Cost) int {
	switch kind {
	case budget.Timeout:
		return c.Timeout
	case budget.Throttled:
		return c.Throttled
	default:
		return c.Transient
	}
}

// newAWS returns a full quota of the given capacity and costs. A
// negative figure counts as 0.
func newAWS(capacity int, costs awsCosts) *awsQuota {
	capacity = max(capacity, 0)
	costs = awsCosts{max(costs.Transient, 0), max(costs.Timeout, 0), max(costs.Throttled, 0)}
	return &awsQuota{capacity: capacity, costs: costs, tokens: capacity}
}

// Request implements [budget.Budget].
func (b *awsQuota) Request(time.Time) {}

// Spend implements [budget.Budget].
func (b *awsQuota) Spend(_ time.Time, c budget.Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < b.costs.of(c) {
		return false
	}
	b.tokens -= b.costs.of(c)
	return true
}

// Refund implements [budget.Budget].
func (b *awsQuota) Refund(_ time.Time, c budget.Cost) { b.add(b.costs.of(c)) }

// Failed records nothing: a failure alone is free.
func (b *awsQuota) Failed(time.Time) {}

// Succeeded pays back the last retry, or one token for a first try.
func (b *awsQuota) Succeeded(_ time.Time, retries int, last budget.Cost) {
	if retries == 0 {
		b.add(1)
		return
	}
	b.add(b.costs.of(last))
}

func (b *awsQuota) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.capacity, b.tokens+n)
}

// Level implements [budget.Budget].
func (b *awsQuota) Level(time.Time) budget.Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	return budget.Level{Used: float64(b.capacity - b.tokens), Allowed: float64(b.capacity)}
}

// finagleBudget is Finagle's RetryBudget: each request deposits, each retry
// withdraws 1/percent deposits, both expire after the time to live, and a
// reserve lets a quiet client retry at a small rate.
type finagleBudget struct {
	mu       sync.Mutex
	deposit  int64
	withdraw int64
	reserve  int64
	slice    time.Duration
	sums     [finagleSlices]int64
	first    time.Time
	current  int64
}

const finagleSlices = 10

// newFinagle returns a budget in which retries may be the given fraction
// of requests, plus minPerSecond. Finagle's own defaults are 10 s, 10 and 0.2.
func newFinagle(ttl time.Duration, minPerSecond int, fraction float64) *finagleBudget {
	const scale = 1000 // Finagle's: a fraction needs no floating point later
	b := &finagleBudget{deposit: scale, withdraw: 1, slice: max(ttl/finagleSlices, 1)}
	if fraction > 0 {
		b.withdraw = max(int64(scale/fraction), 1)
	} else {
		b.deposit = 0
	}
	b.reserve = int64(minPerSecond) * int64(ttl/time.Second) * b.withdraw
	return b
}

// advance drops the slices that have expired; b.mu is held.
func (b *finagleBudget) advance(now time.Time) {
	if b.first.IsZero() {
		b.first = now
	}
	index := int64(now.Sub(b.first) / b.slice)
	for drop := min(index-b.current, finagleSlices); drop > 0; drop-- {
		b.sums[(index-drop+1)%finagleSlices] = 0
	}
	b.current = max(b.current, index)
}

// book adds n to the present slice; b.mu is held.
func (b *finagleBudget) book(n int64) { b.sums[b.current%finagleSlices] += n }

// balance returns what may be withdrawn; b.mu is held.
func (b *finagleBudget) balance() int64 {
	sum := b.reserve
	for _, n := range b.sums {
		sum += n
	}
	return sum
}

// Request implements [budget.Budget].
func (b *finagleBudget) Request(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.book(b.deposit)
}

// Spend implements [budget.Budget].
func (b *finagleBudget) Spend(now time.Time, _ budget.Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	if b.balance() < b.withdraw {
		return false
	}
	b.book(-b.withdraw)
	return true
}

// Refund implements [budget.Budget].
func (b *finagleBudget) Refund(now time.Time, _ budget.Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.book(b.withdraw)
}

// Level implements [budget.Budget]; Allowed is the retries that could be sent now.
func (b *finagleBudget) Level(now time.Time) budget.Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return budget.Level{Allowed: float64(max(b.balance(), 0)) / float64(b.withdraw)}
}
