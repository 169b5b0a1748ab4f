package storm

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/forbear-go/forbear/storm/internal/engine"
	"github.com/forbear-go/forbear/storm/internal/model"
	"github.com/forbear-go/forbear/storm/internal/report"
)

// A scenario that would take too long is run as a sample: one of every so many
// requests, users and instances, on as small a part of every service's capacity.
// Rates and waits are then as in the whole; only chance is larger.

// sampleScale returns one of how many requests to run, or 1 for all: as many as are
// done within the time, by the estimate for all of them.
func (c *compiled) sampleScale(all Estimate, within time.Duration) float64 {
	for i := range c.s.Fleets {
		if c.s.Fleets[i].Burst > 0 {
			return 1 // the crowd is the point
		}
	}
	k := max(float64(all.Time)/float64(within), all.Memory/(MaxMemory/4))
	if k <= 1 {
		return 1
	}
	// No less than a hundred requests a second are left.
	return c.even(max(1, min(math.Ceil(k), c.s.rate()/100, c.divisible())))
}

// even returns the greatest number up to k of which the services whose times were measured
// have a whole number of servers, to within 2 %: a half more would be a half more capacity.
func (c *compiled) even(k float64) float64 {
	fewest := math.Inf(1)
	for _, v := range c.m.Services {
		if v.Measured != nil && v.Capacity > 0 {
			fewest = min(fewest, float64(v.Concurrency))
		}
	}
	if math.IsInf(fewest, 1) || k <= 1 {
		return k
	}
	for left := math.Ceil(fewest / k); left < fewest; left++ {
		at := fewest / left
		if !slices.ContainsFunc(c.m.Services, func(v model.Service) bool {
			part := float64(v.Concurrency) / at
			return v.Measured != nil && v.Capacity > 0 && math.Abs(math.Round(part)/part-1) > 0.02
		}) {
			return at
		}
	}
	return 1
}

// leastPlaces are left of those that bound the calls or the connections of an instance, if
// there are more: fewer are full more often at the same load.
const leastPlaces = 100

// divisible returns how small a part still has a server of each replica, and of each
// service whose times were measured: less than one server would be one, and faster or
// slower than it is. It also has enough places for the calls of each instance.
func (c *compiled) divisible() float64 {
	k := math.Inf(1)
	for i := range c.m.Services {
		if v := &c.m.Services[i]; v.Capacity > 0 && (v.Measured != nil || v.Replicas > 1 && v.Concurrency > 1) {
			k = min(k, float64(v.Concurrency))
		}
	}
	for i := range c.m.Edges {
		e := &c.m.Edges[i]
		for _, places := range []int{e.Connections, e.Plan.Policy.MaxConcurrent} {
			if places > 0 {
				k = min(k, float64(e.Instances)*max(1, float64(places)/leastPlaces))
			}
		}
	}
	return k
}

// rate returns the requests a second of all fleets, about.
func (s *Scenario) rate() (all float64) {
	for i := range s.Fleets {
		all += s.rateOf(&s.Fleets[i])
	}
	return all
}

// rateOf returns those of one fleet, about.
func (s *Scenario) rateOf(f *Fleet) float64 {
	return f.mean(s.Duration) + float64(f.Users)/max(f.Think.Seconds(), 0.01)
}

// fewInstances are left of many: with one, all would have the luck of a single breaker.
const fewInstances = 16

// sampled returns s with one of k of everything that there is many of: requests,
// users, instances, servers, places in a queue. Times stay. A few instances stay where
// each keeps enough requests for its breaker. A bucket of an instance is scaled so that
// all buckets together hold one of k, whatever the number of the instances.
func (s Scenario) sampled(k float64) Scenario {
	part := func(n int) int { return whole(n, 1/k) }
	const enough = 50 // requests a second, for a window of 100 calls
	smaller := func(c *Client, instances *int, rate float64) {
		left := part(*instances)
		if !c.bounded() { // else each keeps its load
			left = max(left, min(*instances, fewInstances, int(rate/k/enough)))
		}
		each := float64(*instances) / float64(left) / k
		c.bound(each)
		c.Baseline.Bucket.Size *= each
		*instances = left
	}
	s = s.WithDefaults()
	s.Engine = Exact
	all := s.rate() // of a service's calls, about, which may be of any fleet
	for i := range s.Fleets {
		f := &s.Fleets[i]
		smaller(&f.Client, &f.Instances, s.rateOf(f))
		f.Rate /= k
		f.Load = scaled(f.Load, 1/k)
		f.Users = part(f.Users)
	}
	for i := range s.Services {
		v := &s.Services[i]
		// The requests that lengthen each other are fewer, and each counts for more.
		v.PerConcurrent = Duration(min(float64(v.PerConcurrent)*k, float64(time.Hour)))
		v.boundInRequests()
		v.Capacity /= k
		v.QueueLength = part(v.QueueLength)
		burst := v.Limit.Burst
		v.Limit = v.Limit.part(1 / k)
		v.Limit.Burst = max(v.Limit.Burst, min(burst, leastTokens))
		if v.Capacity > 0 {
			v.Concurrency = part(v.Concurrency)
		}
		for j := range v.Calls {
			smaller(&v.Calls[j].Client, &v.Calls[j].Instances, all)
		}
	}
	return s
}

// leastTokens are left of a bucket that has more: with fewer, chance alone empties it.
const leastTokens = 50

// part returns l for such a part of the requests. The bucket has room for one at least.
func (l Limit) part(p float64) Limit {
	if l.Rate > 0 {
		l.Rate, l.Burst = l.Rate*p, max(l.Burst*p, 1)
	}
	return l
}

// runSample runs one of k of c and scales the counts back up.
func (c *compiled) runSample(k float64, stop func() bool) (*Result, error) {
	small, err := compile(c.s.sampled(k))
	if err != nil {
		return nil, err
	}
	r := small.result(engine.Run(small.m, stop))
	// Counts and rates are scaled up; latencies, multipliers and shares are those of
	// the whole already.
	r.Scale = k
	r.Notes = append(r.Notes, fmt.Sprintf("a sample: only 1 of every %s requests and servers was simulated, and the counts are scaled up; single seconds vary more than in the whole", report.Amount(k)))
	if v := c.s.fewServers(k); v != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("no p50 and p99: the sample has %d of the %d servers behind each queue of %s, and its requests take and wait longer than those of the whole; where a timeout is short, more of them fail",
			whole(v.servers(), 1/k), v.servers(), v.Name))
		r.forgetLatencies()
	}
	if v := c.s.fewPlaces(k); v != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the sample has %d of the %d places of %s, for those that wait and those that are served: they are full more often, and more is refused than in the whole",
			whole(v.places(), 1/k), v.places(), v.Name))
	}
	r.refusals *= k
	s := &r.Summary
	for _, v := range []*float64{&s.Calls, &s.Attempts, &s.Retries, &s.Good, &s.Failed, &s.Open, &s.BudgetRefused, &s.BreakerRefused, &s.ConcurrencyRefused, &s.Postponed} {
		*v *= k
	}
	for why := range s.Reasons {
		s.Reasons[why] *= k
	}
	for _, all := range [][]float64{r.Series.Offered, r.Series.Fresh, r.Series.Retry, r.Series.Good, r.Series.Failed, r.Series.Wasted} {
		scale(all, k)
	}
	for i := range r.begun {
		r.begun[i].Good *= k
		r.begun[i].Failed *= k
	}
	for i := range r.Services {
		v := &r.Services[i]
		v.Arrivals, v.Retries, v.Served, v.Wasted, v.Shed = v.Arrivals*k, v.Retries*k, v.Served*k, v.Wasted*k, v.Shed*k
		scale(v.Load, k)
	}
	return r, nil
}

// leastServers is the number of servers with which a sample's queue is like the whole's:
// fewer wait for each other longer at the same load.
const leastServers = 8

// servers returns how many servers take from one queue: those of a replica.
func (v *Service) servers() int { return v.replicas()[0].Concurrency }

// fewServers returns a service of which one of k servers is too few for its latencies, or
// nil.
func (s *Scenario) fewServers(k float64) *Service {
	for i := range s.Services {
		if v := &s.Services[i]; v.Capacity > 0 && float64(v.servers()) < leastServers*k {
			return v
		}
	}
	return nil
}

// places returns how many requests each queue of v and its servers hold, or 0 without a
// bound.
func (v *Service) places() int {
	if one := &v.replicas()[0]; one.Bound >= 0 {
		return int(one.Bound) + one.Concurrency
	}
	return 0
}

// fewPlaces returns a service of which one of k places is too few to refuse what the whole
// refuses, or nil.
func (s *Scenario) fewPlaces(k float64) *Service {
	for i := range s.Services {
		if n := s.Services[i].places(); n > 0 && float64(n) < leastPlaces*k {
			return &s.Services[i]
		}
	}
	return nil
}

// forgetLatencies takes the latencies out of r.
func (r *Result) forgetLatencies() {
	none := Latency(math.NaN())
	r.Summary.P50, r.Summary.P99, r.Summary.Mean = none, none, none
	for i := range r.Series.P50 {
		r.Series.P50[i], r.Series.P99[i] = math.NaN(), math.NaN()
	}
}

// scale multiplies all values by k.
func scale(values []float64, k float64) {
	for i := range values {
		values[i] *= k
	}
}
