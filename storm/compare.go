package storm

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"
)

// Variant is a way of retrying, to be laid over a scenario.
type Variant struct {
	Name  string `json:"name"`
	Title string `json:"title"`

	apply func(*Client)
}

// Variants returns the ways that [Compare] sets side by side, from the worst
// habit to the standard. Each adds one thing to the one before it.
func Variants() []Variant {
	return []Variant{
		{"none", "no backoff", func(c *Client) {
			c.Baseline = Baseline{Wait: "none", NoBudget: true, Oblivious: true}
		}},
		{"backoff", "backoff, no jitter", func(c *Client) {
			c.Baseline = Baseline{Wait: "exponential", NoBudget: true, Oblivious: true}
		}},
		{"jitter", "+ full jitter", func(c *Client) {
			c.Baseline = Baseline{NoBudget: true, Oblivious: true}
		}},
		{"budget", "+ retry budget", func(c *Client) {
			c.Baseline = Baseline{Oblivious: true}
		}},
		{"breaker", "+ circuit breaker", func(c *Client) {
			c.Baseline = Baseline{Oblivious: true}
			c.Breaker = true
		}},
		{"one-layer", "+ one layer retries", func(c *Client) {
			c.Baseline = Baseline{}
			c.Breaker = true
		}},
	}
}

// With returns s with every client retrying as v says. What the clients say of
// counts, waits and budgets stays.
func (s Scenario) With(v Variant) Scenario {
	return s.withClients(func(c *Client) {
		unchecked := c.Baseline.Unchecked
		c.Breaker = false
		v.apply(c)
		c.NoBreaker = !c.Breaker
		c.Baseline.Unchecked = unchecked
	})
}

// withClients returns s, with its defaults, and f applied to every client.
func (s Scenario) withClients(f func(*Client)) Scenario {
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

// Layered reports whether any service of s calls another.
func (s Scenario) Layered() bool {
	for _, v := range s.Services {
		if len(v.Calls) > 0 {
			return true
		}
	}
	return false
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
		if !s.Layered() {
			variants = variants[:len(variants)-1]
		}
	}
	all := make([]Compared, len(variants))
	err := each(ctx, len(variants), progress, func(i int) error {
		r, err := Run(ctx, s.With(variants[i]), o)
		all[i] = Compared{variants[i], r}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// each calls f for 0 to n-1 on all processors and returns the error of the
// lowest index.
func each(ctx context.Context, n int, progress func(done, of int), f func(i int) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
		done int
		errs = make([]error, n)
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	finished := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs[i] = err
		if done++; progress != nil {
			progress(done, n)
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				i, ok := take()
				if !ok {
					return
				}
				finished(i, f(i))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// Threshold is what [LeastTrigger] found.
type Threshold struct {
	// Least is the shortest fault, to within Precision, after which the
	// trouble stays; meaningless unless Sticks.
	Least     Duration `json:"least"`
	Precision Duration `json:"precision"`
	Sticks    bool     `json:"sticks"`
	// Longest is the longest fault that was tried.
	Longest Duration   `json:"longest"`
	Engine  EngineKind `json:"engine"`
	Runs    int        `json:"runs"`
}

// LeastTrigger finds by bisection how long the first fault of s must last for
// the trouble to stay. Other faults keep their distance from its end. It tries
// up to longest (a minute when that is 0).
func LeastTrigger(ctx context.Context, s Scenario, o Options, longest time.Duration) (Threshold, error) {
	s = s.WithDefaults()
	t := Threshold{Longest: Duration(cmp.Or(longest, time.Minute))}
	if len(s.Faults) == 0 {
		return t, at("faults", "is empty: there is no trigger to lengthen")
	}
	t.Precision = max(t.Longest/512, Duration(10*time.Millisecond))
	stays := func(d Duration) (bool, error) {
		r, err := Run(ctx, s.lengthened(d), o)
		if err != nil {
			return false, err
		}
		t.Runs++
		t.Engine = r.Engine
		return r.Summary.Verdict == Metastable, nil
	}
	low, high := Duration(0), t.Longest
	ok, err := stays(high)
	if err != nil || !ok {
		return t, err
	}
	t.Sticks = true
	for high-low > t.Precision {
		middle := (low + high) / 2
		if ok, err = stays(middle); err != nil {
			return t, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	t.Least = high
	return t, nil
}

// lengthened returns s with a first fault of length d, and as much time after
// it as s has.
func (s Scenario) lengthened(d Duration) Scenario {
	faults := append([]Fault(nil), s.Faults...)
	more := d - faults[0].For
	faults[0].For = d
	for i := 1; i < len(faults); i++ {
		if faults[i].At >= s.Faults[0].At+s.Faults[0].For {
			faults[i].At += more
		}
	}
	s.Faults = faults
	s.Duration += more
	return s
}
