package model

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/window"
)

// Caller is one process that calls one dependency: its Retryer, and the parts
// of it that the Retryer does not feed by itself.
type Caller struct {
	Retryer  *forbear.Retryer
	Budget   budget.Budget
	Throttle *Throttle         // nil without throttling
	Bulkhead *breaker.Bulkhead // nil without a bound on the calls under way
	outcomes outcomes          // nil when the budget does not count successes
	fresh    *edge.DurableCall // a call of which nothing is known
}

// outcomes is what a budget implements that earns by good calls.
type outcomes interface {
	Succeeded(now time.Time, retries int, last budget.Cost)
}

// Caller makes one instance, of a plan that has been checked.
func (p *Plan) Caller(draw func() float64) *Caller {
	b := &Caller{Budget: p.budget()}
	// The bulkhead of calls is asked by the engine: the Retryer's would count attempts.
	given := *p
	if p.MaxConcurrent > 0 {
		given.Given.MaxConcurrent = 0
		b.Bulkhead = breaker.NewBulkhead(p.MaxConcurrent)
	}
	b.Retryer = forbear.Must(given.retryer(draw, b.Budget))
	b.outcomes, _ = b.Budget.(outcomes)
	if p.ThrottleK > 0 {
		b.Throttle = NewThrottle(p.ThrottleK, cmp.Or(p.ThrottleWindow, 2*time.Minute))
	}
	return b
}

// Check returns what is wrong with the policy of p. It makes a Retryer and throws it
// away, since the Retryer itself judges the policy.
func (p *Plan) Check() error {
	if _, err := p.retryer(rand.Float64, p.budget()); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return nil
}

// retryer makes the Retryer of one instance, or says what is wrong with its policy.
func (p *Plan) retryer(draw func() float64, b budget.Budget) (*forbear.Retryer, error) {
	opts := []forbear.Option{
		forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithRand(draw), forbear.WithBudget(b), forbear.WithService(p.Given.Owner),
	}
	// A waiver names the dependency and the rule, as it has to in a policy file.
	const dependency = "simulated"
	if p.Baseline.Unchecked {
		for _, rule := range []string{"R-1", "R-2", "R-3", "R-7", "INTG-STD-033"} {
			opts = append(opts, forbear.WithWaiver(forbear.Waiver{Rule: rule, Dependency: dependency, Reason: "simulation"}))
		}
	}
	// The policy as it was given is what is judged: defaults are always in range.
	return forbear.New(dependency, p.Given, opts...)
}

// Enter takes a place in the bulkhead, if there is one, for a call that begins now, and
// reports whether it may go on. The breaker counts a refusal as a failure, as for a live call.
func (b *Caller) Enter(now time.Time) bool {
	if b.Bulkhead == nil || b.Bulkhead.Enter() {
		return true
	}
	if k := b.Retryer.Breaker(); k != nil {
		permit, _ := k.Glance()
		k.Record(permit, breaker.Failed, now)
	}
	return false
}

// Leave gives the place of a call back, which has ended.
func (b *Caller) Leave() {
	if b.Bulkhead != nil {
		b.Bulkhead.Leave()
	}
}

// Begin makes of c a call in state s that has not been put to the Retryer yet. It
// reuses c's room, since there may be millions of calls.
func (b *Caller) Begin(c *edge.DurableCall, s forbear.State) {
	if b.fresh == nil {
		b.fresh = edge.Durable(context.Background(), b.Retryer, edge.Progress{})
	}
	*c = *b.fresh
	c.State = s
}

// budget returns the budget of one caller, or the baseline in its place.
func (p *Plan) budget() budget.Budget {
	switch {
	case p.Baseline.NoBudget:
		return Unlimited{}
	case p.Baseline.Bucket.Size > 0:
		size := max(p.Baseline.Bucket.Size, 1)
		return &depositBucket{size: size, deposit: p.Baseline.Bucket.Deposit, tokens: size}
	case p.NewBudget != nil:
		return p.NewBudget()
	}
	return budget.NewRatio(p.Policy.Budget)
}

// Succeeded records the good end of a call after so many retries, of which the
// last had the given cost.
func (b *Caller) Succeeded(now time.Time, retries int, last budget.Cost) {
	if b.outcomes != nil {
		b.outcomes.Succeeded(now, retries, last)
	}
}

// Throttle is the client-side throttle of the SRE book, chapter 21: the fewer requests
// the dependency accepts, the more the client refuses itself. A request that it refuses
// counts as a request all the same.
type Throttle struct {
	k                 float64
	requests, accepts *window.Exact
}

// NewThrottle returns a throttle with multiplier k over a rolling window. The book has
// 2 and two minutes; a smaller k refuses sooner.
func NewThrottle(k float64, over time.Duration) *Throttle {
	return &Throttle{k: k, requests: window.NewExact(over), accepts: window.NewExact(over)}
}

// Request records a request, sent or refused.
func (t *Throttle) Request(now time.Time) { t.requests.Add(now, 1) }

// Accepted records that the dependency took a request, whatever its response.
func (t *Throttle) Accepted(now time.Time) { t.accepts.Add(now, 1) }

// RejectProbability returns the chance that a request made now should be refused
// without being sent: (requests - k x accepts) / (requests + 1), and not below 0.
func (t *Throttle) RejectProbability(now time.Time) float64 {
	requests := float64(t.requests.Sum(now))
	return max(0, (requests-t.k*float64(t.accepts.Sum(now)))/(requests+1))
}
