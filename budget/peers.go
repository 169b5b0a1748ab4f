package budget

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
)

// This file holds the budgets that well-known clients use, with their published
// constants, for those who must match a fleet that has them already.

// AWS is the retry quota of the AWS SDKs' standard mode: a bucket that
// each retry draws from by kind, that a success after a retry pays back by the
// last retry's cost, and that a success at first try raises by one.
type AWS struct {
	mu       sync.Mutex
	capacity int
	costs    AWSCosts
	tokens   int
}

// AWSCosts are the tokens that one retry draws from an [AWS], by the kind
// of the failure before it.
type AWSCosts struct{ Transient, Timeout, Throttled int }

func (c AWSCosts) of(kind Cost) int {
	switch kind {
	case Timeout:
		return c.Timeout
	case Throttled:
		return c.Throttled
	default:
		return c.Transient
	}
}

// NewAWS returns the quota of retry mode 2.0: 500 tokens; a retry costs
// 5, after a timeout 10.
func NewAWS() *AWS { return NewAWSWith(500, AWSCosts{5, 10, 5}) }

// NewAWS21 returns the quota of retry mode 2.1: 500 tokens; a retry costs
// 14, after throttling 5.
func NewAWS21() *AWS { return NewAWSWith(500, AWSCosts{14, 14, 5}) }

// NewAWSWith returns a full quota of the given capacity and costs. A
// negative figure counts as 0.
func NewAWSWith(capacity int, costs AWSCosts) *AWS {
	capacity = max(capacity, 0)
	costs = AWSCosts{max(costs.Transient, 0), max(costs.Timeout, 0), max(costs.Throttled, 0)}
	return &AWS{capacity: capacity, costs: costs, tokens: capacity}
}

// Request implements [Budget].
func (b *AWS) Request(time.Time) {}

// Spend implements [Budget].
func (b *AWS) Spend(_ time.Time, c Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < b.costs.of(c) {
		return false
	}
	b.tokens -= b.costs.of(c)
	return true
}

// Refund implements [Budget].
func (b *AWS) Refund(_ time.Time, c Cost) { b.add(b.costs.of(c)) }

// Failed records nothing: a failure alone is free.
func (b *AWS) Failed(time.Time) {}

// Succeeded pays back the last retry, or one token for a first try.
func (b *AWS) Succeeded(_ time.Time, retries int, last Cost) {
	if retries == 0 {
		b.add(1)
		return
	}
	b.add(b.costs.of(last))
}

func (b *AWS) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.capacity, b.tokens+n)
}

// Level implements [Budget].
func (b *AWS) Level(time.Time) Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Level{Used: float64(b.capacity - b.tokens), Allowed: float64(b.capacity)}
}

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

// Finagle is Finagle's RetryBudget: each request deposits, each retry
// withdraws 1/percent deposits, both expire after the time to live, and a
// reserve lets a quiet client retry at a small rate.
type Finagle struct {
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

// NewFinagle returns a budget in which retries may be the given fraction
// of requests, plus minPerSecond. Finagle's own defaults are 10 s, 10 and 0.2.
// It panics when the fraction is NaN or infinite.
func NewFinagle(ttl time.Duration, minPerSecond int, fraction float64) *Finagle {
	finite.Must("budget: fraction", fraction)
	const scale = 1000 // Finagle's: a fraction needs no floating point later
	b := &Finagle{deposit: scale, withdraw: 1, slice: max(ttl/finagleSlices, 1)}
	if fraction > 0 {
		b.withdraw = max(int64(scale/fraction), 1)
	} else {
		b.deposit = 0
	}
	b.reserve = int64(minPerSecond) * int64(ttl/time.Second) * b.withdraw
	return b
}

// advance drops the slices that have expired; b.mu is held.
func (b *Finagle) advance(now time.Time) {
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
func (b *Finagle) book(n int64) { b.sums[b.current%finagleSlices] += n }

// balance returns what may be withdrawn; b.mu is held.
func (b *Finagle) balance() int64 {
	sum := b.reserve
	for _, n := range b.sums {
		sum += n
	}
	return sum
}

// Request implements [Budget].
func (b *Finagle) Request(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.book(b.deposit)
}

// Spend implements [Budget].
func (b *Finagle) Spend(now time.Time, _ Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	if b.balance() < b.withdraw {
		return false
	}
	b.book(-b.withdraw)
	return true
}

// Refund implements [Budget].
func (b *Finagle) Refund(now time.Time, _ Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.book(b.withdraw)
}

// Level implements [Budget]; Allowed is the retries that could be sent now.
func (b *Finagle) Level(now time.Time) Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return Level{Allowed: float64(max(b.balance(), 0)) / float64(b.withdraw)}
}
