package storm

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// This file holds what is not forbear's: the baselines.

// wait returns the wait that the baseline puts in the place of d's, before retry
// number n (the first is 1).
func (p *plan) wait(d *forbear.Decision, n int, draw func() float64) time.Duration {
	ceiling := forbear.Ceiling(p.policy.Backoff.Base, p.policy.Backoff.Cap, n-1)
	switch p.given.Baseline.Wait {
	case "":
		return d.Wait
	case "none":
		ceiling = 0
	case "fixed":
		ceiling = p.policy.Backoff.Base
	case "equal":
		ceiling = ceiling/2 + time.Duration(draw()*float64(ceiling/2))
	}
	return ceiling
}

// unlimited is the budget of those who have none.
type unlimited struct{}

func (unlimited) Request(time.Time)                 {}
func (unlimited) Spend(time.Time, budget.Cost) bool { return true }
func (unlimited) Refund(time.Time, budget.Cost)     {}
func (unlimited) Level(time.Time) budget.Level      { return budget.Level{Allowed: 1} }

// depositBucket is a token bucket that every request fills: Brooker's, and that
// of the AWS Builders' Library.
type depositBucket struct{ size, deposit, tokens float64 }

func (b *depositBucket) Request(time.Time) { b.tokens = min(b.size, b.tokens+b.deposit) }

func (b *depositBucket) Spend(time.Time, budget.Cost) bool {
	// Ten deposits of 0.1 are one token, whatever the rounding.
	if b.tokens < 1-1e-9 {
		return false
	}
	b.tokens = max(b.tokens-1, 0)
	return true
}

func (b *depositBucket) Refund(time.Time, budget.Cost) { b.tokens = min(b.size, b.tokens+1) }

func (b *depositBucket) Level(time.Time) budget.Level {
	return budget.Level{Used: b.size - b.tokens, Allowed: b.size}
}
