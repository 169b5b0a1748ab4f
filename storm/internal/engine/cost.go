package engine

import (
	"slices"
	"time"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// Cost returns the events, the bytes and the time of a run of m in which every call
// fails as often as its policy allows, in every layer.
func Cost(m *model.Model) (events, memory float64, took time.Duration) {
	attempts, _ := worst(m, (*model.Fleet).Mean)
	_, pending := worst(m, (*model.Fleet).Peak)
	// A pending call is an event, a task and a call, and what is kept of it; a caller
	// is a Retryer with its budget, and as much again with a breaker.
	callers, perCall := 0.0, 16.0+32+72
	for i := range m.Edges {
		each := 4096.0
		if m.Edges[i].Plan.Keeps() {
			each, perCall = 8192, 16+32+72+176
		}
		callers += each * float64(m.Edges[i].Instances)
	}
	events = attempts * perAttempt(m) * m.Duration.Seconds()
	took = time.Duration(min(events*250, 1e17)) // 250 ns each, in trouble
	return events, 64<<20 + pending*perCall + callers, took
}

// perAttempt returns the number of events of an attempt: arrival or retry, done,
// timeout, a fraction of replies, and the timeout of a service that has one.
func perAttempt(m *model.Model) float64 {
	if slices.ContainsFunc(m.Services, func(v model.Service) bool { return v.Timeout > 0 }) {
		return 5
	}
	return 4
}

// worst returns the attempts a second of m, and the calls that are pending at
// once, when nothing ends well. rateOf says which rate counts of an open loop that
// changes.
func worst(m *model.Model, rateOf func(f *model.Fleet, end int64) float64) (attempts, pending float64) {
	spike := 1.0
	for _, f := range m.Faults {
		spike = max(spike, f.Spike)
	}
	seconds := m.Duration.Seconds()
	var visit func(e int, calls, amplified float64)
	visit = func(e int, calls, amplified float64) {
		g := &m.Edges[e]
		tries := float64(1 + g.Plan.Limit)
		if g.Plan.Baseline.Oblivious {
			amplified *= tries
		} else {
			// What one layer retries or gives up, no other tries again.
			amplified = max(amplified, tries)
		}
		n := calls * amplified
		attempts += n
		life := float64(g.Plan.Timeout)/1e9*tries + min(g.Plan.Policy.Total.Seconds(), 60)
		pending += n * min(life, seconds)
		// Only the attempts that are served go on to the next layer.
		if c := m.Services[g.To].Capacity * float64(max(m.Services[g.To].Replicas, 1)); c > 0 && n > c {
			calls *= c / n
		}
		for _, next := range m.Out[g.To] {
			visit(next, calls*float64(m.Edges[next].FanOut), amplified)
		}
	}
	for i := range m.Fleets {
		f := &m.Fleets[i]
		rate := rateOf(f, int64(m.Duration)) * spike
		if f.Users > 0 {
			rate = float64(f.Users) / max(f.Think.Seconds(), 0.01) * spike
		}
		if f.Burst > 0 {
			rate = float64(f.Burst) / max(seconds, 1)
		}
		visit(i, rate, 1)
	}
	return attempts, pending
}
