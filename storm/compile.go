package storm

import (
	"cmp"
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// compiled is a valid scenario, with its defaults, and what the engine reads.
type compiled struct {
	s Scenario
	m *model.Model
}

// compile checks s, resolves its names and turns its words into effects. The edges
// of the fleets come first, in the order of the fleets.
func compile(s Scenario) (*compiled, error) {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	m := &model.Model{
		Seed: s.Seed, Duration: s.Duration.D(), Bin: s.Bin.D(),
		Out: make([][]int, len(s.Services)), Nominal: make([]float64, len(s.Services)),
	}
	index := map[string]int{}
	for i := range s.Services {
		index[s.Services[i].Name] = i
		m.Services = append(m.Services, s.Services[i].model())
	}
	for i := range s.Fleets {
		f := &s.Fleets[i]
		p, err := f.Client.plan()
		if err != nil {
			return nil, err
		}
		m.Edges = append(m.Edges, model.Edge{Plan: p, To: index[f.Calls], FanOut: 1, Instances: f.Instances})
		m.Fleets = append(m.Fleets, model.Fleet{
			Rate: f.Rate, Regular: f.Regular, Users: f.Users, Think: f.Think.D(), Burst: f.Burst, BurstAt: f.BurstAt.D(),
		})
	}
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			e := &s.Services[i].Calls[j]
			p, err := e.Client.plan()
			if err != nil {
				return nil, err
			}
			m.Out[i] = append(m.Out[i], len(m.Edges))
			m.Edges = append(m.Edges, model.Edge{Plan: p, To: index[e.To], FanOut: e.FanOut, Instances: e.Instances})
		}
	}
	for _, f := range s.Faults {
		m.Faults = append(m.Faults, f.model(index[f.Service]))
	}
	// Last, as the load of a service spreads over all edges.
	for i := range s.Fleets {
		m.Load(m.Edges[i].To, s.Fleets[i].Rate)
	}
	return &compiled{s, m}, nil
}

// model returns v as the engine wants it: with one bound of the queue, in
// requests, and the failure that a refusal is.
func (v *Service) model() model.Service {
	// A bound in seconds counts at the nominal capacity, whatever the faults leave.
	bound := -1.0
	switch {
	case v.QueueLength > 0:
		bound = float64(v.QueueLength)
	case v.Queue > 0:
		bound = v.Queue.Seconds() * v.Capacity
	}
	return model.Service{
		Capacity: v.Capacity, Concurrency: v.Concurrency, Time: v.Time.D(), Law: model.Law(v.Law), CV: v.CV,
		PerConcurrent: v.PerConcurrent.D(), QueueSlowdown: v.QueueSlowdown, Bound: bound, Shed: v.Shed.D(),
		DropExpired: v.DropExpired, Refusal: model.Refusal(v.RetryAfter.D()),
	}
}

// model returns what f does to the service of that index. Nothing below knows of
// kinds: a new kind of fault that is a mixture of these effects is a case here.
func (f *Fault) model(service int) model.Fault {
	w := model.Fault{Service: service, At: f.At.D(), End: (f.At + f.For).D(), Factor: 1}
	switch f.Kind {
	case Outage:
		w.Outage = f.Rate
	case Errors:
		mode := map[ErrorMode]int{Independent: model.FailIndependent, Sticky: model.FailSticky, LoadCoupled: model.FailLoad}[f.Mode]
		w.Failing[mode] = f.Rate
	case Brownout:
		w.Factor = f.Factor
	case SlowStart:
		w.Factor, w.Climbs = f.Factor, true
	case Pause:
		w.Factor = 0
	case Spike:
		w.Service, w.Spike = model.Fleets, f.Factor
	case Partition:
		w.Cut = f.Share
	}
	return w
}

// trigger returns when the first fault of s begins and the last one ends, or nil
// without faults.
func (s *Scenario) trigger() *[2]Duration {
	if len(s.Faults) == 0 {
		return nil
	}
	t := &[2]Duration{s.Faults[0].At, 0}
	for _, f := range s.Faults {
		t[0] = min(t[0], f.At)
		t[1] = max(t[1], f.At+f.For)
	}
	return t
}

// AsPolicy returns the forbear policy that c stands for, without validating it: a
// word that is unknown is an error, a value outside the standard's ranges is not.
func (c *Client) AsPolicy() (forbear.Policy, error) {
	// A policy of the caller's own is taken as it is.
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
	// A batch is not durable by its kind, and is postponed all the same.
	w.Durable = (p.Kind.Durable() || p.Kind == forbear.Batch) && c.Baseline.Bucket.Size == 0 && c.NewBudget == nil &&
		(w.Breaker || !c.Baseline.NoBudget)
	return w, w.Check()
}
