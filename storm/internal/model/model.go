package model

import (
	"time"

	"github.com/forbear-go/forbear"
)

// Model is a valid scenario with its names resolved and its defaults filled in.
// An engine reads it and never writes to it, so that runs may share one.
type Model struct {
	Seed     uint64
	Duration time.Duration
	Bin      time.Duration // width of a bin of the record
	Step     time.Duration // of the cohort engine; 0 lets it choose

	Fleets   []Fleet
	Services []Service
	Faults   []Fault
	Edges    []Edge  // Edges[i] is that of Fleets[i]; those of the services follow
	Out      [][]int // edges that leave each service
	// Nominal is each service's load without faults and retries, in requests a
	// second; only open loops count.
	Nominal []float64
}

// Fleet is where calls come from. Exactly one of Rate, Users and Burst is set.
type Fleet struct {
	Name    string
	Rate    float64 // of an open loop, in requests a second of all instances
	Regular bool    // evenly spaced instead of Poisson
	Users   int     // of a closed loop
	Think   time.Duration
	Burst   int // requests at the instant BurstAt
	BurstAt time.Duration
}

// Law is the distribution of a service's times.
type Law string

// The laws.
const (
	Exponential Law = "exponential"
	Fixed       Law = "fixed"
	Lognormal   Law = "lognormal"
)

// Service is a FIFO queue before a number of servers.
type Service struct {
	Capacity    float64 // requests a second of all servers together; 0 is unlimited
	Concurrency int     // servers
	Time        time.Duration
	Law         Law
	CV          float64 // of a lognormal
	// PerConcurrent lengthens a service for each request that is in service.
	PerConcurrent time.Duration
	QueueSlowdown float64       // capacity is divided by 1 + this x queue in seconds
	Bound         float64       // of the queue, in requests; negative is none
	Shed          time.Duration // expected wait above which requests are refused
	DropExpired   bool          // what no client waits for is thrown away
	Refusal       forbear.Failure
}

// Edge is a caller and what it calls.
type Edge struct {
	Plan      *Plan
	To        int // service
	FanOut    int // calls for each request of the caller
	Instances int // processes of the caller, each with its own budget and breaker
}

// Load adds rate to the nominal load of service i and of all that it calls.
func (m *Model) Load(i int, rate float64) {
	if rate == 0 {
		return
	}
	m.Nominal[i] += rate
	for _, e := range m.Out[i] {
		m.Load(m.Edges[e].To, rate*float64(m.Edges[e].FanOut))
	}
}

// Layered reports whether any service calls another.
func (m *Model) Layered() bool { return len(m.Edges) > len(m.Fleets) }

// Guarded reports whether any caller has a circuit breaker.
func (m *Model) Guarded() bool {
	for i := range m.Edges {
		if m.Edges[i].Plan.Breaker {
			return true
		}
	}
	return false
}

// Overloaded reports whether the load alone is more than a service can do.
func (m *Model) Overloaded() bool {
	for i, v := range m.Services {
		if v.Capacity > 0 && m.Nominal[i] > v.Capacity {
			return true
		}
	}
	return false
}
