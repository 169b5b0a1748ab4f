package storm

import (
	"cmp"
	"fmt"

	"github.com/forbear-go/forbear"
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
	}
	index := map[string]int{}
	for i := range s.Services {
		index[s.Services[i].Name] = len(m.Services)
		m.Services = append(m.Services, s.Services[i].replicas()...)
	}
	m.Out, m.Nominal = make([][]int, len(m.Services)), make([]float64, len(m.Services))
	for i := range s.Fleets {
		f := &s.Fleets[i]
		p, err := f.Client.plan()
		if err != nil {
			return nil, err
		}
		m.Edges = append(m.Edges, model.Edge{Plan: p, To: index[f.Calls], FanOut: 1, Instances: f.Instances, Connections: f.Client.Connections})
		m.Fleets = append(m.Fleets, model.Fleet{
			Rate: f.Rate, Load: f.steps(), Regular: f.Regular, Turns: f.Spread == "turns" || f.Burst > 0, Users: f.Users, Think: f.Think.D(), Burst: f.Burst, BurstAt: f.BurstAt.D(),
		})
	}
	for i := range s.Services {
		first := index[s.Services[i].Name]
		for j := range s.Services[i].Calls {
			e := &s.Services[i].Calls[j]
			p, err := e.Client.plan()
			if err != nil {
				return nil, err
			}
			m.Out[first] = append(m.Out[first], len(m.Edges))
			m.Edges = append(m.Edges, model.Edge{Plan: p, To: index[e.To], FanOut: e.FanOut, Instances: e.Instances, Connections: e.Client.Connections})
		}
		for k := 1; k < m.Services[first].Replicas; k++ {
			m.Out[first+k] = m.Out[first] // the replicas share the callers
		}
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		first := index[f.Service]
		hit := f.model(first)
		if f.Kind != Spike {
			hit.Replicas = cmp.Or(f.Replicas, m.Services[first].Replicas)
		}
		m.Faults = append(m.Faults, hit)
	}
	// Last, as the load of a service spreads over all edges.
	for i := range s.Fleets {
		m.Load(m.Edges[i].To, m.Fleets[i].Peak(int64(m.Duration)))
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
	s := model.Service{
		Capacity: v.Capacity, Concurrency: v.Concurrency, Time: v.Time.D(), Law: model.Law(v.Law), CV: v.CV,
		PerConcurrent: v.PerConcurrent.D(), QueueSlowdown: v.QueueSlowdown, Bound: bound, Shed: v.Shed.D(),
		DropExpired: v.DropExpired, Refusal: model.Refusal(v.RetryAfter.D()), Timeout: v.Timeout.D(),
		Limit: model.Limit{Rate: v.Limit.Rate, Burst: v.Limit.Burst, Refusal: model.Response(429, v.Limit.RetryAfter.D())},
	}
	v.measure(&s)
	return s
}

// model returns what f does to the service of that index. Nothing below knows of
// kinds: a new kind of fault that is a mixture of these effects is a case here.
func (f *Fault) model(service int) model.Fault {
	w := model.Fault{Service: service, At: f.At.D(), End: (f.At + f.For).D(), Factor: 1, Method: f.Method, Failure: f.failure()}
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
	case Slow:
		w.Slow, w.SlowTime = f.Rate, f.Time.D()
	}
	return w
}

// failure returns what requests fail with that f hits: the zero value where that is the
// usual, which in an outage has the service's Retry-After.
func (f *Fault) failure() forbear.Failure {
	usual := 500
	if f.Kind == Outage {
		usual = 503
	}
	status := cmp.Or(f.Status, usual)
	if status == usual && f.RetryAfter == 0 {
		return forbear.Failure{}
	}
	return model.Response(status, f.RetryAfter.D())
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
