package storm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Bounds of a scenario. They keep a slip of the pen from a run of hours, and hold
// more than any real system: a billion requests a second, a day, ten layers.
const (
	// MaxDepth is the number of layers of services.
	MaxDepth = 10
	// MaxServices, MaxFleets and MaxFaults are those of one scenario.
	MaxServices = 64
	MaxFleets   = 32
	MaxFaults   = 64
	// maxFault bounds how long a fault lasts, far beyond any run: the end of one that
	// lasts for ever would not be after its beginning.
	maxFault = 1000 * time.Hour
	// MaxInstances is the number of processes of one caller: each has a Retryer.
	MaxInstances = 100_000
	// MaxRate is in requests a second, of a load and of a capacity.
	MaxRate     = 1e9
	maxDuration = 24 * time.Hour
	// maxBins keeps a result below a few megabytes.
	maxBins = 20_000
	// minBins lets a verdict distinguish before, during and after a fault.
	minBins = 20
)

// Validate returns everything that is wrong with s, joined: [FieldErrors] lists
// it, each fault with the path of its field.
func (s Scenario) Validate() error {
	c := checker{s: s.WithDefaults()}
	c.head()
	for i := range c.s.Fleets {
		c.fleet(i)
	}
	seen := map[string]bool{}
	for i := range c.s.Services {
		c.service(i, seen)
	}
	for i := range c.s.Faults {
		c.fault(i)
	}
	if len(c.errs) == 0 { // the names are good
		c.depth()
	}
	return errors.Join(c.errs...)
}

// checker gathers what is wrong with a scenario, so that a user sees all of it at
// once. Each method looks at one part, and reports by the path of the field.
type checker struct {
	s    Scenario
	errs []error
}

func (c *checker) add(path, format string, args ...any) {
	c.errs = append(c.errs, at(path, format, args...))
}

// check notes err, if there is one.
func (c *checker) check(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

// number complains about v unless it is in [low, high].
func (c *checker) number(path string, v, low, high float64) {
	if !(v >= low && v <= high) { // NaN too
		c.add(path, "%v is outside %v to %v", v, low, high)
	}
}

// span complains about d unless it is in [0, high].
func (c *checker) span(path string, d Duration, high time.Duration) {
	if d < 0 || d.D() > high {
		c.add(path, "%v is outside 0s to %v", d, high)
	}
}

// head looks at the scenario's own fields.
func (c *checker) head() {
	s := &c.s
	c.check(unknown("engine", "EngineKind", string(s.Engine)))
	if s.Duration <= 0 || s.Duration.D() > maxDuration {
		c.add("duration", "%v is outside 1ns to %v", s.Duration, maxDuration)
	}
	if s.Bin <= 0 {
		c.add("bin", "%v is not positive", s.Bin)
	} else if len(s.Faults) > 0 && s.Bin > s.Duration/minBins {
		c.add("bin", "%v is too wide for verdicts: want at most %v, a %dth of the duration", s.Bin, s.Duration/minBins, minBins)
	} else if s.Duration/s.Bin > maxBins {
		c.add("bin", "%v makes %d bins: at most %d", s.Bin, s.Duration/s.Bin, maxBins)
	}
	if len(s.Fleets) == 0 || len(s.Fleets) > MaxFleets {
		c.add("fleets", "has %d entries: want 1 to %d", len(s.Fleets), MaxFleets)
	}
	if len(s.Services) == 0 || len(s.Services) > MaxServices {
		c.add("services", "has %d entries: want 1 to %d", len(s.Services), MaxServices)
	}
	if len(s.Faults) > MaxFaults {
		c.add("faults", "has %d entries: at most %d", len(s.Faults), MaxFaults)
	}
}

// known complains unless a service has that name.
func (c *checker) known(path, name string) {
	if !slices.ContainsFunc(c.s.Services, func(v Service) bool { return v.Name == name }) {
		c.add(path, "no service is called %q", name)
	}
}

// client looks at how a fleet or a service calls. What is in range for the
// simulator may still be refused by the standard: the plan's Retryer says so.
func (c *checker) client(path string, k *Client) {
	c.span(path+".timeout", k.Timeout, time.Hour)
	c.span(path+".rtt", k.RTT, time.Hour)
	c.span(path+".throttle.window", k.Throttle.Window, time.Hour)
	c.number(path+".connections", float64(k.Connections), 0, 1e6)
	c.number(path+".max_concurrent", float64(k.MaxConcurrent), 0, 1e6)
	c.number(path+".throttle.k", k.Throttle.K, 0, 100)
	c.number(path+".baseline.bucket.deposit", k.Baseline.Bucket.Deposit, 0, 1e9)
	c.number(path+".baseline.bucket.size", k.Baseline.Bucket.Size, 0, 1e9)
	for _, word := range []struct {
		name    string
		stray   bool
		without string
	}{
		{"rtt_law", k.RTTLaw != "" && k.RTT == 0, "rtt"},
		{"throttle.window", k.Throttle.Window != 0 && k.Throttle.K == 0, "throttle.k"},
		{"baseline.bucket.deposit", k.Baseline.Bucket.Deposit != 0 && k.Baseline.Bucket.Size == 0, "baseline.bucket.size"},
	} {
		if word.stray {
			c.add(path+"."+word.name, "changes nothing without %s: set that, or remove this", word.without)
		}
	}
	if k.Baseline.NoBudget && k.Baseline.Bucket.Size != 0 {
		c.add(path+".baseline.bucket", "changes nothing beside no_budget: remove one of them")
	}
	if k.Retries != nil && (*k.Retries < 0 || *k.Retries > 1000) {
		c.add(path+".retries", "%d is outside 0 to 1000", *k.Retries)
		return
	}
	if k.PolicyRef != "" && k.Policy == nil {
		c.add(path+".policy", "names a policy file, which is read with a scenario file alone")
		return
	}
	_, err := k.plan()
	c.check(within(path, err))
}

// fleet looks at fleet i. A fleet is an open loop, a closed one or a burst; a mix
// is two fleets.
func (c *checker) fleet(i int) {
	f := &c.s.Fleets[i]
	path := fmt.Sprintf("fleets[%d]", i)
	set := 0
	for _, on := range []bool{f.Rate != 0, f.Load != nil, f.Users != 0, f.Burst != 0} {
		if on {
			set++
		}
	}
	if set != 1 {
		c.add(path, "sets %d of rate, load, users and burst above 0: want exactly one", set)
	}
	c.number(path+".rate", f.Rate, 0, MaxRate)
	c.load(path+".load", f.Load)
	for _, of := range []struct {
		name   string
		stray  bool
		belong string
	}{
		{"think", f.Think != 0 && f.Users == 0, "users"},
		{"burst_at", f.BurstAt != 0 && f.Burst == 0, "burst"},
		{"regular", f.Regular && f.Rate == 0 && f.Load == nil, "rate or load"},
		{"spread", f.Spread != "" && f.Burst != 0, "rate, load or users"},
	} {
		if of.stray {
			c.add(path+"."+of.name, "belongs to a fleet with %s", of.belong)
		}
	}
	c.check(unknown(path+".spread", "Fleet.spread", cmp.Or(f.Spread, "chance")))
	c.number(path+".users", float64(f.Users), 0, 1e9)
	c.number(path+".burst", float64(f.Burst), 0, 1e8)
	c.number(path+".instances", float64(f.Instances), 1, MaxInstances)
	c.span(path+".think", f.Think, time.Hour)
	c.span(path+".burst_at", f.BurstAt, c.s.Duration.D())
	c.known(path+".calls", f.Calls)
	c.client(path+".client", &f.Client)
}

// service looks at service i, and notes its name in seen.
func (c *checker) service(i int, seen map[string]bool) {
	v := &c.s.Services[i]
	path := fmt.Sprintf("services[%d]", i)
	if v.Name == "" {
		c.add(path+".name", "is missing")
	} else if seen[v.Name] {
		c.add(path+".name", "%q appears twice", v.Name)
	}
	seen[v.Name] = true
	c.number(path+".capacity", v.Capacity, 0, MaxRate)
	if v.Quantiles == nil {
		c.number(path+".concurrency", float64(v.Concurrency), min(1, v.Capacity), 1e9)
		c.check(unknown(path+".law", "Service.law", v.Law))
	} else {
		c.measured(path, v)
	}
	if v.Law == "lognormal" {
		c.number(path+".cv", v.CV, 0.01, 20)
	} else if v.CV != 0 && v.Quantiles == nil {
		c.add(path+".cv", "belongs to the lognormal: the law is %s", v.Law)
	}
	c.replicas(i)
	c.number(path+".queue_slowdown", v.QueueSlowdown, 0, 1e6)
	c.number(path+".queue_length", float64(v.QueueLength), 0, 1e9)
	c.span(path+".time", v.Time, time.Hour)
	c.span(path+".per_concurrent", v.PerConcurrent, time.Hour)
	c.span(path+".queue", v.Queue, time.Hour)
	c.span(path+".shed", v.Shed, time.Hour)
	c.span(path+".retry_after", v.RetryAfter, time.Hour)
	c.span(path+".timeout", v.Timeout, time.Hour)
	c.limit(path+".limit", &v.Limit)
	if v.Capacity == 0 && (v.Queue > 0 || v.Shed > 0 || v.QueueLength > 0 || v.QueueSlowdown > 0) {
		c.add(path+".capacity", "is unlimited, so it has no queue: set capacity")
	}
	if v.Capacity == 0 && v.Concurrency > 0 && v.Quantiles == nil {
		c.add(path+".concurrency", "bounds nothing while capacity is unlimited: set capacity")
	}
	if v.Capacity > 0 && v.Time > 0 && v.Quantiles == nil {
		c.add(path+".time", "follows from capacity and concurrency: remove time or concurrency")
	}
	if v.Queue > 0 && v.QueueLength > 0 {
		c.add(path+".queue_length", "bounds what queue bounds already: remove one of them")
	}
	for j := range v.Calls {
		e := &v.Calls[j]
		inner := fmt.Sprintf("%s.calls[%d]", path, j)
		c.known(inner+".to", e.To)
		c.number(inner+".fan_out", float64(e.FanOut), 1, 100)
		c.number(inner+".instances", float64(e.Instances), 1, MaxInstances)
		c.client(inner+".client", &e.Client)
	}
}

// limit looks at a service's rate limit.
func (c *checker) limit(path string, l *Limit) {
	if l.Rate == 0 {
		if *l != (Limit{}) {
			c.add(path+".rate", "is missing: how many requests a second are let in")
		}
		return
	}
	c.number(path+".rate", l.Rate, 1e-12, MaxRate) // a sample has a part of it
	c.number(path+".burst", l.Burst, 1, MaxRate)
	c.span(path+".retry_after", l.RetryAfter, time.Hour)
}

// depth refuses cycles and stacks of more than MaxDepth services: with a fan-out of
// two, ten layers make 512 of one request. It wants names that are known to be good.
func (c *checker) depth() {
	index := map[string]int{}
	for i, v := range c.s.Services {
		index[v.Name] = i
	}
	state := make([]int, len(c.s.Services)) // 0 new, -1 being visited, else its depth
	var visit func(i int) int
	visit = func(i int) int {
		if state[i] != 0 {
			return state[i]
		}
		state[i] = -1
		deepest := 0
		for j, e := range c.s.Services[i].Calls {
			d := visit(index[e.To])
			if d < 0 {
				c.add(fmt.Sprintf("services[%d].calls[%d].to", i, j), "closes a cycle through %q", e.To)
				d = 0
			}
			deepest = max(deepest, d)
		}
		state[i] = deepest + 1
		return state[i]
	}
	for i := range c.s.Services {
		if d := visit(i); d > MaxDepth {
			c.add(fmt.Sprintf("services[%d]", i), "has %d layers below: want at most %d in all", d, MaxDepth)
			return
		}
	}
}
