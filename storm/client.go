package storm

import (
	"cmp"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge/httpcode"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// AsPolicy returns the forbear policy that c stands for, without validating it: a
// word that is unknown is an error, a value outside the standard's ranges is not.
func (c *Client) AsPolicy() (forbear.Policy, error) {
	// A policy of the caller's own is taken as it is.
	if c.Policy != nil {
		p := *c.Policy
		if c.Breaker != nil {
			p.Breaker.Disabled = !*c.Breaker
		}
		return p, c.besidePolicy()
	}
	p := forbear.Policy{
		Total:      c.Total.D(),
		PerAttempt: c.Timeout.D(),
		Strict:     c.Strict,
		Breaker:    breaker.Policy{Disabled: c.Breaker != nil && !*c.Breaker},
		Backoff:    forbear.Backoff{Base: c.Base.D(), Cap: c.Cap.D()},
		Budget: budget.Policy{
			Ratio: c.Budget.Ratio, Window: c.Budget.Window.D(), MinRetries: c.Budget.MinRetries,
		},
		MaxConcurrent: c.MaxConcurrent,
	}
	if err := p.Kind.UnmarshalText([]byte(cmp.Or(c.Kind, "sync"))); err != nil {
		return p, at("kind", "%v", err)
	}
	// A webhook's policy counts attempts; none at all is a policy that is disabled.
	if c.Retries != nil {
		p.Disabled = *c.Retries == 0
		if p.MaxRetries = *c.Retries; p.Kind == forbear.Webhook && *c.Retries > 0 {
			p.MaxRetries, p.MaxAttempts = 0, *c.Retries+1
		}
	}
	if err := unknown("jitter", "Client.jitter", cmp.Or(c.Jitter, "full"), " (others are baselines: see baseline.wait)"); err != nil {
		return p, err
	}
	if c.Jitter == "decorrelated" {
		p.Backoff.Jitter = forbear.JitterDecorrelated
	}
	if err := unknown("budget.of", "Budget.of", cmp.Or(c.Budget.Of, "initial")); err != nil {
		return p, err
	}
	if c.Budget.Of == "total" {
		p.Budget.Of = budget.OfTotal
	}
	// A window shorter than the cap, or than a base without a cap, is refused; a
	// scenario that sets no window means one that fits.
	if longest := cmp.Or(p.Backoff.Cap, p.Backoff.Base); p.Budget.Window == 0 && longest > budget.DefaultWindow {
		p.Budget.Window = longest
	}
	// A short window brings a cap that fits when none was named.
	if w := p.Budget.Window; w > 0 && w < p.WithDefaults().Backoff.Cap && p.Backoff.Cap == 0 {
		p.Backoff.Cap = w
	}
	return p, nil
}

// besidePolicy returns an error for the first word of c that its policy sets already.
func (c *Client) besidePolicy() error {
	for _, word := range []struct {
		name string
		set  bool
	}{
		{"kind", c.Kind != ""}, {"retries", c.Retries != nil}, {"timeout", c.Timeout != 0}, {"total", c.Total != 0},
		{"base", c.Base != 0}, {"cap", c.Cap != 0}, {"jitter", c.Jitter != ""}, {"strict", c.Strict}, {"budget", c.Budget != Budget{}},
		{"max_concurrent", c.MaxConcurrent != 0},
	} {
		if word.set {
			return at(word.name, "is set by the policy as well: remove one of them")
		}
	}
	return nil
}

// plan checks c and makes it ready for the engine.
func (c *Client) plan() (*model.Plan, error) {
	p, err := c.AsPolicy()
	if err != nil {
		return nil, err
	}
	if err := unknown("baseline.wait", "Baseline.wait", cmp.Or(c.Baseline.Wait, "none")); err != nil {
		return nil, err
	}
	if err := unknown("rtt_law", "Client.rtt_law", cmp.Or(c.RTTLaw, "fixed")); err != nil {
		return nil, err
	}
	if err := c.keyed(); err != nil {
		return nil, err
	}
	w := &model.Plan{
		Given: p, Policy: p.WithDefaults(),
		Baseline: model.Baseline{
			Wait: c.Baseline.Wait, NoBudget: c.Baseline.NoBudget, Bucket: model.Bucket(c.Baseline.Bucket),
			Oblivious: c.Baseline.Oblivious, Unchecked: c.Baseline.Unchecked,
		},
		Timeout: int64(p.AttemptTimeout()), RTT: int64(c.RTT), RTTExponential: c.RTTLaw == "exponential",
		Limit: p.Retries(), Breaker: !p.Breaker.Disabled,
		ThrottleK: c.Throttle.K, ThrottleWindow: c.Throttle.Window.D(), NewBudget: c.NewBudget,
	}
	w.Method = cmp.Or(c.Method, "GET")
	w.NeedsKey = httpcode.NeedsKey(w.Method) && !p.Idempotent
	if c.Key || p.Keys == forbear.KeyGenerate {
		w.Key = "simulated"
	}
	if p.Kind == forbear.Webhook {
		w.Method, w.NeedsKey, w.Key = "POST", true, "simulated" // the message's id
	}
	// A batch is not durable by its kind, and is postponed all the same.
	w.Durable = (p.Kind.Durable() || p.Kind == forbear.Batch) && c.Baseline.Bucket.Size == 0 && c.NewBudget == nil &&
		(w.Breaker || !c.Baseline.NoBudget)
	// A call of another kind holds its place in the bulkhead to its end.
	if !p.Kind.Durable() && p.Kind != forbear.Batch {
		w.MaxConcurrent = p.MaxConcurrent
	}
	return w, w.Check()
}

// keyed returns an error for a method that is unknown, and for a method or a key that
// would change nothing.
func (c *Client) keyed() error {
	if err := unknown("method", "Client.method", cmp.Or(c.Method, "GET")); err != nil {
		return err
	}
	switch webhook := c.Kind == "webhook" || c.Policy != nil && c.Policy.Kind == forbear.Webhook; {
	case webhook && c.Method != "":
		return at("method", "does not belong to webhooks, which are POSTs with a key: remove it")
	case webhook && c.Key:
		return at("key", "does not belong to webhooks, which carry a key already: remove it")
	case c.Key && !httpcode.NeedsKey(c.Method):
		return at("key", "changes nothing for %s, which is idempotent: set method to POST or PATCH, or remove key", cmp.Or(c.Method, "GET"))
	}
	return nil
}
