package model

import (
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/window"
)

// Model is a valid scenario with its names resolved and its defaults filled in.
// The engine reads it and never writes to it, so that runs may share one.
type Model struct {
	// Seed starts the streams of random numbers: the same seed, the same run.
	Seed uint64
	// Duration is how long is simulated.
	Duration time.Duration
	// Bin is the width of a bin of the record.
	Bin time.Duration

	Fleets   []Fleet
	Services []Service
	Faults   []Fault
	// Edges are the callers. Edges[i] is that of Fleets[i]; those of the services
	// follow.
	Edges []Edge
	// Out lists, by service, the edges that leave it.
	Out [][]int
	// Nominal is each service's load without faults and retries, in requests a
	// second; only open loops count, with the greatest rate of those that change.
	Nominal []float64
}

// Fleet is where calls come from. Exactly one of Rate, Load, Users and Burst is set.
type Fleet struct {
	// Rate is the load of an open loop, in requests a second of all instances.
	Rate float64
	// Load is that of an open loop whose rate changes, by time; the first step is at 0.
	Load []Step
	// Regular spaces an open loop evenly instead of by Poisson.
	Regular bool
	// Users is the size of a closed loop: each waits for a response and then
	// thinks, for Think in the mean, before the next request.
	Users int
	Think time.Duration
	// Turns lets the instances take turns; otherwise a call comes to one by chance.
	Turns bool
	// Burst is the number of requests at the instant BurstAt.
	Burst   int
	BurstAt time.Duration
}

// Law is the distribution of a service's times.
type Law string

// The laws. They are called as scenario files call them.
const (
	Exponential Law = "exponential"
	Fixed       Law = "fixed"
	Lognormal   Law = "lognormal"
	// Quantiles are measured times; scenario files list them.
	Quantiles Law = "quantiles"
)

// Service is a FIFO queue before a number of servers.
type Service struct {
	// Replicas is the number of services of which this is one, as like as peas; the index
	// of the first stands for all. 0 is 1.
	Replicas int
	// Capacity is what all servers together can do, in requests a second; 0 is
	// unlimited.
	Capacity float64
	// Concurrency is the number of servers.
	Concurrency int
	// Time is the mean service time where Capacity is 0; else it follows from
	// Concurrency and Capacity.
	Time time.Duration
	Law  Law
	// CV is the coefficient of variation of a lognormal.
	CV float64
	// Measured are the times of the law Quantiles.
	Measured *Measured
	// PerConcurrent lengthens a service for each request that is in service.
	PerConcurrent time.Duration
	// QueueSlowdown divides the capacity by 1 + this x queue in seconds.
	QueueSlowdown float64
	// Bound is the most requests that may wait; negative is no bound.
	Bound float64
	// Shed is the expected wait above which requests are refused; 0 is off.
	Shed time.Duration
	// DropExpired throws away what no client waits for, without working on it.
	DropExpired bool
	// Refusal is the failure that a refused request comes back with.
	Refusal forbear.Failure
	// Limit refuses requests before they reach the queue.
	Limit Limit
	// Timeout is how long after its arrival a request gets a 503, whatever becomes of the
	// work on it; 0 is off.
	Timeout time.Duration
}

// Edge is a caller and what it calls.
type Edge struct {
	Plan *Plan
	// To is the index of the service that is called, of the first of its replicas.
	To int
	// FanOut is the number of calls for each request of the caller.
	FanOut int
	// Instances is the number of processes of the caller, each with a budget and
	// a breaker of its own.
	Instances int
	// Connections is the number of connections of each instance; 0 is no bound.
	Connections int
}

// Load adds rate to the nominal load of service i and of all that it calls.
func (m *Model) Load(i int, rate float64) {
	if rate == 0 {
		return
	}
	n := max(m.Services[i].Replicas, 1)
	for k := range n {
		m.Nominal[i+k] += rate / float64(n)
	}
	for _, e := range m.Out[i] {
		m.Load(m.Edges[e].To, rate*float64(m.Edges[e].FanOut))
	}
}

// Guarded reports whether any caller has a circuit breaker.
func (m *Model) Guarded() bool {
	return slices.ContainsFunc(m.Edges, func(e Edge) bool { return e.Plan.Breaker })
}

// Overloaded reports whether the load alone is more than a service can do, or lets in.
func (m *Model) Overloaded() bool {
	for i, v := range m.Services {
		if v.Capacity > 0 && m.Nominal[i] > v.Capacity || v.Limit.Rate > 0 && m.Nominal[i] > v.Limit.Rate {
			return true
		}
	}
	return false
}

// The failures that attempts come back with, as the HTTP edge would classify them:
// a 500, and an attempt that took too long.
var (
	FailedResponse = Response(500, 0)
	FailedTimeout  = forbear.Failure{Class: forbear.ClassTimeout, Type: errtype.Timeout}
)

// StartOfTime is the start of every run on the clock of budgets and breakers:
// at a fixed distance from the windows' epoch, so that their slots lie alike in
// every run, and after the making of any breaker.
func StartOfTime() time.Time { return window.Epoch().Add(10 * 365 * 24 * time.Hour) }
