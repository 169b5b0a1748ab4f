package storm

import (
	"context"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/parallel"
)

// Variant is a way of retrying, to be laid over a scenario with [Scenario.With].
type Variant struct {
	Name  string `json:"name"`
	Title string `json:"title"`

	baseline Baseline
	breaker  bool
}

// Variants returns the ways that [Compare] sets side by side, from the worst
// habit to the standard. Each adds one thing to the one before it.
func Variants() []Variant {
	// Oblivious layers are what most stacks have: only the last variant knows of the
	// others.
	return []Variant{
		{"none", "no backoff", Baseline{Wait: "none", NoBudget: true, Oblivious: true}, false},
		{"backoff", "backoff, no jitter", Baseline{Wait: "exponential", NoBudget: true, Oblivious: true}, false},
		{"jitter", "+ full jitter", Baseline{NoBudget: true, Oblivious: true}, false},
		{"budget", "+ retry budget", Baseline{Oblivious: true}, false},
		{"breaker", "+ circuit breaker", Baseline{Oblivious: true}, true},
		{"one-layer", "+ one layer retries", Baseline{}, true},
	}
}

// With returns s with every client retrying as v says. What the clients say of
// counts, waits and budgets stays, and so does the leave to say more than the
// standard allows.
func (s Scenario) With(v Variant) Scenario {
	return s.withClients(func(c *Client) {
		unchecked := c.Baseline.Unchecked
		c.Baseline, c.Breaker = v.baseline, &v.breaker
		c.Baseline.Unchecked = unchecked
	})
}

// WithPolicy returns s with every fleet retrying by p, whatever its clients did before. p
// is taken as judged: a policy file may waive a rule for it. Calls between services stay.
func (s Scenario) WithPolicy(p forbear.Policy) Scenario {
	s.Fleets = slices.Clone(s.Fleets)
	for i := range s.Fleets {
		c := &s.Fleets[i].Client
		*c = Client{Policy: &p, Method: c.Method, Key: c.Key, RTT: c.RTT, RTTLaw: c.RTTLaw, Throttle: c.Throttle, Connections: c.Connections, Baseline: Baseline{Unchecked: true}}
	}
	return s
}

// withClients returns s, with its defaults, and f applied to every client.
func (s Scenario) withClients(f func(c *Client)) Scenario {
	s = s.WithDefaults()
	for i := range s.Fleets {
		f(&s.Fleets[i].Client)
	}
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			f(&s.Services[i].Calls[j].Client)
		}
	}
	return s
}

// Compared is one variant's result.
type Compared struct {
	Variant Variant `json:"variant"`
	Result  *Result `json:"result"`
}

// Compare runs s once for each of the variants, with the same seed. Without
// variants it takes all that apply: in a scenario of one layer, one-layer says
// nothing new and is left out. progress may be nil.
func Compare(ctx context.Context, s Scenario, o Options, progress func(done, of int), variants ...Variant) ([]Compared, error) {
	if len(variants) == 0 {
		variants = Variants()
		if !slices.ContainsFunc(s.Services, func(v Service) bool { return len(v.Calls) > 0 }) {
			variants = variants[:len(variants)-1]
		}
	}
	return parallel.Map(ctx, len(variants), progress, func(i int) (Compared, error) {
		r, err := Run(ctx, s.With(variants[i]), o)
		return Compared{variants[i], r}, err
	})
}
