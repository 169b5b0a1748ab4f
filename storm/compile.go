package storm

import (
	"fmt"
	"math"
	"time"
)

// model is a valid scenario with its names resolved, for the engines.
type model struct {
	s     Scenario // with defaults
	edges []edge   // those of the fleets first, in order
	out   [][]int  // edges that leave each service
	// nominal is each service's load without faults and retries, in requests a
	// second; only open loops count.
	nominal []float64
	roots   int // edges[:roots] are the fleets'
}

// edge is a caller and what it calls.
type edge struct {
	plan      *plan
	to        int
	fan       int
	instances int
}

func compile(s Scenario) (*model, error) {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	m := &model{s: s, out: make([][]int, len(s.Services)), nominal: make([]float64, len(s.Services))}
	index := map[string]int{}
	for i, v := range s.Services {
		index[v.Name] = i
	}
	for i := range s.Fleets {
		f := &s.Fleets[i]
		p, err := f.Client.plan()
		if err != nil {
			return nil, err
		}
		m.edges = append(m.edges, edge{p, index[f.Calls], 1, f.Instances})
	}
	m.roots = len(m.edges)
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			e := &s.Services[i].Calls[j]
			p, err := e.Client.plan()
			if err != nil {
				return nil, err
			}
			m.out[i] = append(m.out[i], len(m.edges))
			m.edges = append(m.edges, edge{p, index[e.To], e.FanOut, e.Instances})
		}
	}
	for i := range s.Fleets {
		m.load(m.edges[i].to, s.Fleets[i].Rate)
	}
	return m, nil
}

// load adds rate to service i and to all that it calls.
func (m *model) load(i int, rate float64) {
	if rate == 0 {
		return
	}
	m.nominal[i] += rate
	for _, e := range m.out[i] {
		m.load(m.edges[e].to, rate*float64(m.edges[e].fan))
	}
}

// layered reports whether any service calls another.
func (m *model) layered() bool { return len(m.edges) > m.roots }

// overloaded reports whether the load alone is more than a service can do.
func (m *model) overloaded() bool {
	for i, v := range m.s.Services {
		if v.Capacity > 0 && m.nominal[i] > v.Capacity {
			return true
		}
	}
	return false
}

// condition is what the faults make of one service at one time.
type condition struct {
	factor  float64 // of its capacity
	outage  float64 // share of requests answered 503 at once
	failing [3]float64
	cut     float64 // share of the client instances that is cut off
}

const (
	failIndependent = iota
	failSticky
	failLoad
)

// condition returns what holds for service i at t.
func (m *model) condition(i int, t int64) condition {
	c := condition{factor: 1}
	for j := range m.s.Faults {
		f := &m.s.Faults[j]
		if t < int64(f.At) || t >= int64(f.At+f.For) || f.Service != m.s.Services[i].Name {
			continue
		}
		switch f.Kind {
		case Outage:
			c.outage = max(c.outage, f.Rate)
		case Errors:
			mode := map[ErrorMode]int{Independent: failIndependent, Sticky: failSticky, LoadCoupled: failLoad}[f.Mode]
			c.failing[mode] = max(c.failing[mode], f.Rate)
		case Brownout:
			c.factor *= f.Factor
		case SlowStart:
			c.factor *= f.Factor + (1-f.Factor)*float64(t-int64(f.At))/float64(f.For)
		case Pause:
			c.factor = 0
		case Partition:
			c.cut = max(c.cut, f.Share)
		}
	}
	return c
}

// spike returns the factor on the fleets' load at t.
func (m *model) spike(t int64) float64 {
	k := 1.0
	for j := range m.s.Faults {
		if f := &m.s.Faults[j]; f.Kind == Spike && t >= int64(f.At) && t < int64(f.At+f.For) {
			k *= f.Factor
		}
	}
	return k
}

// boundaries returns the times at which any condition changes.
func (m *model) boundaries() []int64 {
	var at []int64
	for _, f := range m.s.Faults {
		at = append(at, int64(f.At), int64(f.At+f.For))
		if f.Kind == SlowStart {
			const steps = 100
			for k := 1; k < steps; k++ {
				at = append(at, int64(f.At)+int64(f.For)*int64(k)/steps)
			}
		}
	}
	return at
}

// trigger returns when the first fault begins and the last one ends, within
// the run; ok is false without faults.
func (m *model) trigger() (begin, end time.Duration, ok bool) {
	begin = math.MaxInt64
	for _, f := range m.s.Faults {
		begin = min(begin, f.At.D())
		end = max(end, (f.At + f.For).D())
	}
	return begin, end, len(m.s.Faults) > 0
}

// queueBound returns the greatest number of waiting requests of service i;
// ok is false when there is no bound.
func queueBound(v *Service) (n float64, ok bool) {
	switch {
	case v.QueueLength > 0:
		return float64(v.QueueLength), true
	case v.Queue > 0:
		return v.Queue.Seconds() * v.Capacity, true
	}
	return 0, false
}
