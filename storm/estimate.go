package storm

import (
	"fmt"
	"time"
)

// Limits of a run that nobody forces.
const (
	MaxMemory = 2 << 30 // bytes
	MaxTime   = 10 * time.Minute
)

// Estimate is what a run would need.
type Estimate struct {
	Engine EngineKind
	Events float64
	Memory float64 // bytes
	Time   time.Duration

	// Scale is one of how many requests the exact engine would run.
	Scale float64

	peakRate float64 // events a second at the worst
}

// TooLargeError refuses a run that would need too much.
type TooLargeError struct{ Estimate Estimate }

// Error says what the run would need, and what is allowed.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s engine would need about %s and %v (%.3g events): at most %s and %v unless forced",
		e.Estimate.Engine, bytesText(e.Estimate.Memory), e.Estimate.Time.Round(time.Second),
		e.Estimate.Events, bytesText(MaxMemory), MaxTime)
}

func bytesText(b float64) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.0f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", b/(1<<30))
}

// Estimate returns what a run of s would need with its engine; with Auto, with
// the engine that would be chosen.
func (s Scenario) Estimate() (Estimate, error) {
	m, err := compile(s)
	if err != nil {
		return Estimate{}, err
	}
	return choose(m), nil
}

// times returns the estimate of n such runs, one after the other.
func (e Estimate) times(n int) Estimate {
	e.Events *= float64(n)
	e.Time = time.Duration(min(float64(e.Time)*float64(n), 1e17))
	return e
}

// refuse returns a [*TooLargeError] for what is too much and not forced.
func (e Estimate) refuse(o Options) error {
	if !o.Force && (e.Memory > MaxMemory || e.Time > MaxTime) {
		return &TooLargeError{e}
	}
	return nil
}

// choose returns the estimate of the engine that the scenario asks for. With
// breakers there may be a second run without them.
func choose(m *model) Estimate {
	e := chooseEngine(m)
	if m.guarded() {
		e = e.times(2)
	}
	return e
}

func chooseEngine(m *model) Estimate {
	exact, cohort := estimate(m), estimateCohort(m)
	switch m.s.Engine {
	case Exact:
		return exact
	case Cohort:
		return cohort
	}
	if ok, _ := cohortFits(m); ok {
		if exact.Time <= affordable && exact.Memory <= MaxMemory {
			return exact
		}
		return cohort
	}
	if k := sampleScale(m, exact); k > 1 {
		small, err := compile(m.s.sampled(k))
		if err == nil {
			exact = estimate(small)
			exact.Scale = k
		}
	}
	return exact
}

// estimate is that of the exact engine: every call fails as often as its policy
// allows, in every layer.
func estimate(m *model) Estimate {
	spike := 1.0
	for _, f := range m.s.Faults {
		if f.Kind == Spike {
			spike = max(spike, f.Factor)
		}
	}
	seconds := m.s.Duration.Seconds()
	var attempts, pending float64 // a second; at once
	var visit func(e int, calls, amplified float64)
	visit = func(e int, calls, amplified float64) {
		g := &m.edges[e]
		tries := float64(1 + g.plan.limit)
		if g.plan.given.Baseline.Oblivious {
			amplified *= tries
		} else {
			// What one layer retries or gives up, no other tries again.
			amplified = max(amplified, tries)
		}
		n := calls * amplified
		attempts += n
		life := float64(g.plan.timeout)/1e9*tries + min(g.plan.policy.Total.Seconds(), 60)
		pending += n * min(life, seconds)
		// Only the attempts that are served go on to the next layer.
		if c := m.s.Services[g.to].Capacity; c > 0 && n > c {
			calls *= c / n
		}
		for _, next := range m.out[g.to] {
			visit(next, calls*float64(m.edges[next].fan), amplified)
		}
	}
	for i := range m.s.Fleets {
		f := &m.s.Fleets[i]
		rate := f.Rate * spike
		if f.Users > 0 {
			rate = float64(f.Users) / max(f.Think.Seconds(), 0.01) * spike
		}
		if f.Burst > 0 {
			rate = float64(f.Burst) / max(seconds, 1)
		}
		visit(i, rate, 1)
	}
	callers, perCall := 0.0, 16.0+24+72
	for i := range m.edges {
		each := 4096.0
		if m.edges[i].plan.keeps() {
			each, perCall = 8192, 16+24+72+176
		}
		callers += each * float64(m.edges[i].instances)
	}
	const perAttempt = 4 // arrival or retry, done, timeout, a fraction of replies
	e := Estimate{Engine: Exact, peakRate: attempts * perAttempt}
	e.Events = e.peakRate * seconds
	e.Memory = 64<<20 + pending*perCall + callers
	e.Time = time.Duration(min(e.Events*250, 1e17)) // 250 ns each, in trouble
	return e
}
