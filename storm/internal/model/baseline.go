package model

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/duration"
)

// This file holds what is not forbear's: the baselines. They exist to be compared
// with, and nothing outside the simulator can have them.

// Wait returns the wait that the baseline puts in the place of d's, before retry
// number n (the first is 1).
func (p *Plan) Wait(d *forbear.Decision, n int, draw func() float64) time.Duration {
	ceiling := duration.Ceiling(p.Policy.Backoff.Base, p.Policy.Backoff.Cap, n-1)
	switch p.Baseline.Wait {
	case "":
		return d.Wait
	case "none":
		ceiling = 0
	case "fixed":
		ceiling = p.Policy.Backoff.Base
	case "equal":
		ceiling = ceiling/2 + time.Duration(draw()*float64(ceiling/2))
	}
	return ceiling
}

// Unlimited is the budget of clients that have none.
type Unlimited struct{}

// Request implements [budget.Budget].
func (Unlimited) Request(time.Time) {}

// Spend allows every retry.
func (Unlimited) Spend(time.Time, budget.Cost) bool { return true }

// Refund implements [budget.Budget].
func (Unlimited) Refund(time.Time, budget.Cost) {}

// Level returns a budget of which nothing is used.
func (Unlimited) Level(time.Time) budget.Level { return budget.Level{Allowed: 1} }

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
