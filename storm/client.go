package storm

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
)

// plan is a [Client] made ready to be instantiated.
type plan struct {
	policy  forbear.Policy // with defaults
	given   Client
	timeout int64 // ns
	breaker bool
	// durable says that what is refused for now is put off. With a baseline in
	// the place of the budget a refusal is final, as it is in the original.
	durable bool
	rtt     int64
	limit   int // retries
}

// keeps reports whether something must outlive the attempts of p: the permits of
// a breaker, or what was put off.
func (p *plan) keeps() bool { return p.breaker || p.durable }

// AsPolicy returns the forbear policy that c stands for, without validating it.
func (c *Client) AsPolicy() (forbear.Policy, error) {
	if c.Policy != nil {
		p := *c.Policy
		p.Breaker.Disabled = p.Breaker.Disabled || c.NoBreaker
		return p, nil
	}
	p := forbear.Policy{
		Total:      c.Total.D(),
		PerAttempt: c.Timeout.D(),
		Strict:     c.Strict,
		Breaker:    breaker.Policy{Disabled: !c.Breaker},
		Backoff:    forbear.Backoff{Base: c.Base.D(), Cap: c.Cap.D()},
		Budget: budget.Policy{
			Ratio: c.Budget.Ratio, Window: c.Budget.Window.D(), MinRetries: c.Budget.MinRetries,
		},
	}
	kind, err := forbear.ParseKind(cmp.Or(c.Kind, "sync"))
	if err != nil {
		return p, at("kind", "%v", err)
	}
	p.Kind = kind
	if c.Retries != nil {
		p.Disabled = *c.Retries == 0
		if p.MaxRetries = *c.Retries; kind == forbear.Webhook && *c.Retries > 0 {
			p.MaxRetries, p.MaxAttempts = 0, *c.Retries+1
		}
	}
	switch c.Jitter {
	case "", "full":
	case "decorrelated":
		p.Backoff.Jitter = forbear.JitterDecorrelated
	default:
		return p, at("jitter", "%q is unknown: want full or decorrelated (others are baselines: see baseline.wait)", c.Jitter)
	}
	switch c.Budget.Of {
	case "", "initial":
	case "total":
		p.Budget.Of = budget.OfTotal
	default:
		return p, at("budget.of", "%q is unknown: want initial or total", c.Budget.Of)
	}
	// A window shorter than the cap is refused; a scenario that sets only a
	// cap means a window that fits it.
	if p.Budget.Window == 0 && p.Backoff.Cap > budget.DefaultWindow {
		p.Budget.Window = p.Backoff.Cap
	}
	if p.Budget.Window == 0 && p.Backoff.Cap == 0 && p.Backoff.Base > budget.DefaultWindow {
		p.Budget.Window = p.Backoff.Base
	}
	// A short window brings a cap that fits when none was named.
	if w := p.Budget.Window; w > 0 && w < forbear.DefaultCap && p.Backoff.Cap == 0 {
		p.Backoff.Cap = w
	}
	return p, nil
}

// plan checks c and makes it ready.
func (c *Client) plan() (*plan, error) {
	p, err := c.AsPolicy()
	if err != nil {
		return nil, err
	}
	switch c.Baseline.Wait {
	case "", "none", "fixed", "exponential", "equal":
	default:
		return nil, at("baseline.wait", "%q is unknown: want none, fixed, exponential or equal", c.Baseline.Wait)
	}
	switch c.RTTLaw {
	case "", "fixed", "exponential":
	default:
		return nil, at("rtt_law", "%q is unknown: want fixed or exponential", c.RTTLaw)
	}
	pl := &plan{given: *c, policy: p.WithDefaults(), rtt: int64(c.RTT)}
	pl.timeout = int64(p.AttemptTimeout())
	pl.limit = p.Retries()
	pl.breaker = !p.Breaker.Disabled
	pl.durable = (p.Kind.Durable() || p.Kind == forbear.Batch) && c.Baseline.Bucket.Size == 0 && c.NewBudget == nil &&
		(pl.breaker || !c.Baseline.NoBudget)
	if _, err := pl.caller(func() float64 { return 0 }, 1, 1); err != nil {
		return nil, err
	}
	return pl, nil
}

// caller is one process that calls one dependency: its Retryer, and the parts
// of it that the Retryer does not feed by itself.
type caller struct {
	r        *forbear.Retryer
	budget   budget.Budget
	outcomes interface {
		Succeeded(now time.Time, retries int, last budget.Cost)
	}
	adaptive *budget.Adaptive
}

// caller makes one instance. It stands for so many processes, and each request
// that it counts stands for unit requests: what a budget gives to a process
// whatever its load is scaled by processes / unit. The exact engine has 1 and 1.
func (p *plan) caller(draw func() float64, processes, unit float64) (*caller, error) {
	b := &caller{}
	switch {
	case p.given.Baseline.NoBudget:
		b.budget = unlimited{}
	case p.given.Baseline.Bucket.Size > 0:
		size := max(p.given.Baseline.Bucket.Size*processes/unit, 1)
		b.budget = &depositBucket{size: size, deposit: p.given.Baseline.Bucket.Deposit, tokens: size}
	case p.given.NewBudget != nil:
		b.budget = p.given.NewBudget()
	default:
		bp := p.policy.Budget
		bp.MinRetries = int(float64(bp.MinRetries) * processes / unit)
		b.budget = budget.NewRatio(bp)
	}
	opts := []forbear.Option{
		forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithRand(draw), forbear.WithBudget(b.budget),
	}
	const dependency = "simulated"
	if p.given.Baseline.Unchecked {
		for _, rule := range []string{"R-1", "R-2", "R-3", "R-7", "INTG-STD-033"} {
			opts = append(opts, forbear.WithWaiver(forbear.Waiver{Rule: rule, Dependency: dependency, Reason: "simulation"}))
		}
	}
	given, err := p.given.AsPolicy() // what was given is what is judged
	if err != nil {
		return nil, err
	}
	r, err := forbear.New(dependency, given, opts...)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	b.r = r
	b.outcomes, _ = b.budget.(interface {
		Succeeded(now time.Time, retries int, last budget.Cost)
	})
	if k := p.given.Throttle.K; k > 0 {
		b.adaptive = budget.NewAdaptive(k, cmp.Or(p.given.Throttle.Window.D(), 2*time.Minute))
	}
	return b, nil
}

// succeeded notes the good end of a call.
func (b *caller) succeeded(now time.Time, retries int, last budget.Cost) {
	if b.outcomes != nil {
		b.outcomes.Succeeded(now, retries, last)
	}
}
