package model

import "time"

// Fleets is the Service of a [Fault] that hits the fleets' load.
const Fleets = -1

// Fault is what holds for one service from At until End. A scenario's fault of
// any kind comes down to these effects; the zero value of each is none, save for
// Factor.
type Fault struct {
	Service int
	At, End time.Duration
	Outage  float64        // share of requests that are answered 503 at once
	Failing [Modes]float64 // share of the served requests that fail, by mode
	Factor  float64        // of the capacity; 1 is all of it, 0 a pause
	Climbs  bool           // the capacity climbs from Factor back to 1
	Cut     float64        // share of the client instances that is cut off
	Spike   float64        // factor of all fleets' load; 0 is none
}

// The ways in which requests are chosen to fail.
const (
	FailIndependent = iota // each attempt anew
	FailSticky             // the same calls, on every attempt
	FailLoad               // what exceeds the part of the load that can be done
	Modes
)

// Condition is what the faults together make of one service at one time.
type Condition struct {
	Factor  float64 // of its capacity
	Outage  float64 // share of requests answered 503 at once
	Failing [Modes]float64
	Cut     float64 // share of the client instances that is cut off
}

// holds reports whether f holds at t, in ns since the start.
func (f *Fault) holds(t int64) bool { return t >= int64(f.At) && t < int64(f.End) }

// capacity returns the part of the capacity that f leaves at t.
func (f *Fault) capacity(t int64) float64 {
	if f.Climbs {
		return f.Factor + (1-f.Factor)*float64(t-int64(f.At))/float64(f.End-f.At)
	}
	return f.Factor
}

// Condition returns what holds for service i at t, in ns since the start. Losses
// of capacity multiply; of other effects the greatest counts.
func (m *Model) Condition(i int, t int64) Condition {
	c := Condition{Factor: 1}
	for j := range m.Faults {
		f := &m.Faults[j]
		if f.Service != i || !f.holds(t) {
			continue
		}
		c.Factor *= f.capacity(t)
		c.Outage = max(c.Outage, f.Outage)
		c.Cut = max(c.Cut, f.Cut)
		for mode, rate := range f.Failing {
			c.Failing[mode] = max(c.Failing[mode], rate)
		}
	}
	return c
}

// Spike returns the factor on the fleets' load at t, in ns since the start.
func (m *Model) Spike(t int64) float64 {
	k := 1.0
	for j := range m.Faults {
		if f := &m.Faults[j]; f.Spike != 0 && f.holds(t) {
			k *= f.Spike
		}
	}
	return k
}

// Boundaries returns the times, in ns, at which any condition changes. A climb
// is one of a hundred steps.
func (m *Model) Boundaries() []int64 {
	const steps = 100
	var at []int64
	for _, f := range m.Faults {
		at = append(at, int64(f.At), int64(f.End))
		if f.Climbs {
			for k := 1; k < steps; k++ {
				at = append(at, int64(f.At)+int64(f.End-f.At)*int64(k)/steps)
			}
		}
	}
	return at
}

// LoadFailure returns the share of requests that fail when only (1 - rate) of
// the nominal load can be served and load is offered.
func LoadFailure(rate, nominal, load float64) float64 {
	if load <= 0 {
		return rate
	}
	return max(0, 1-(1-rate)*nominal/max(load, nominal))
}
