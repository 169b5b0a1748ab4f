package model

import (
	"time"

	"github.com/forbear-go/forbear"
)

// Fleets is the Service of a [Fault] that hits the fleets' load.
const Fleets = -1

// Fault is what holds for one service from At until End. A scenario's fault of
// any kind comes down to these effects; the zero value of each is none, save for
// Factor.
type Fault struct {
	// Service is the index of the one that is hit, or Fleets. Replicas is the number of
	// services from there on that are hit, the replicas of one; 0 is 1.
	Service, Replicas int
	At, End           time.Duration
	// Outage is the share of requests that fail at once, without work.
	Outage float64
	// Failing is the share of the served requests that fail, by mode.
	Failing [Modes]float64
	// Failure is what they fail with. The zero value is the service's refusal for an
	// outage, and a 500 for what was served.
	Failure forbear.Failure
	// Slow is the share of requests that take SlowTime in place of their service time.
	Slow     float64
	SlowTime time.Duration
	// Method limits what hits requests to those of that method; empty is any.
	Method string
	// Factor is the part of the capacity that is left; 1 is all of it, 0 a pause.
	Factor float64
	// Climbs lets the capacity climb from Factor back to 1 until End.
	Climbs bool
	// Cut is the share of the client instances that a partition cuts off.
	Cut float64
	// Spike is the factor on the load of all fleets; 0 is none.
	Spike float64
}

// The ways in which requests are chosen to fail. At 1,000 requests a second, a
// rate of a half and three retries they end at 1,875, 2,500 and about 3,140
// requests a second, so that the choice matters more than the rate.
const (
	FailIndependent = iota // each attempt anew
	FailSticky             // the same calls, on every attempt
	FailLoad               // what exceeds the part of the load that can be done
	Modes
)

// holds reports whether f holds at t, in ns since the start.
func (f *Fault) holds(t int64) bool { return t >= int64(f.At) && t < int64(f.End) }

// Hits reports whether f hits service i.
func (f *Fault) Hits(i int) bool { return i >= f.Service && i < f.Service+max(f.Replicas, 1) }

// capacity returns the part of the capacity that f leaves at t.
func (f *Fault) capacity(t int64) float64 {
	if f.Climbs {
		return f.Factor + (1-f.Factor)*float64(t-int64(f.At))/float64(f.End-f.At)
	}
	return f.Factor
}

// Condition returns what all faults together make of service i at t, in ns since the
// start, as one fault. Losses of capacity multiply; of partitions the greatest counts.
// What hits single requests is in [Model.Hits].
func (m *Model) Condition(i int, t int64) Fault {
	c := Fault{Factor: 1}
	for j := range m.Faults {
		f := &m.Faults[j]
		if !f.Hits(i) || !f.holds(t) {
			continue
		}
		c.Factor *= f.capacity(t)
		c.Cut = max(c.Cut, f.Cut)
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

// LoadMeter is the arrival rate of the last second, for errors that depend on
// the load. The engine advances it every tenth of a second. The zero value has
// seen nothing.
type LoadMeter struct {
	bins [11]float64 // ten that are closed, and the open one
	open int
	rate float64 // sum of the closed bins
}

// Advance closes the open bin and drops the one that is a second old.
func (l *LoadMeter) Advance() {
	l.rate += l.bins[l.open]
	l.open = (l.open + 1) % len(l.bins)
	l.rate -= l.bins[l.open]
	l.bins[l.open] = 0
}

// Add counts n arrivals in the open bin.
func (l *LoadMeter) Add(n float64) { l.bins[l.open] += n }

// Rate returns the arrivals of the ten closed bins, which are those of a second.
func (l *LoadMeter) Rate() float64 { return l.rate }
