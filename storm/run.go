package storm

import (
	"context"
	"time"
)

// Options are for whoever runs a scenario. The zero value is fine.
type Options struct {
	// Force runs what would need more than MaxMemory or MaxTime.
	Force bool
}

// Run simulates s, and once more without circuit breakers when they turned calls
// away: see [SelfInflicted]. It refuses a scenario with mistakes ([FieldErrors]
// lists them) and, with a [*TooLargeError], one that is too large. When ctx ends,
// the result so far is returned with Stopped set, and the context's error.
func Run(ctx context.Context, s Scenario, o Options) (*Result, error) {
	m, err := compile(s)
	if err != nil {
		return nil, err
	}
	return m.run(ctx, o)
}

func (m *model) run(ctx context.Context, o Options) (*Result, error) {
	e := choose(m)
	if err := e.refuse(o); err != nil {
		return nil, err
	}
	start := time.Now()
	stop := func() bool { return ctx.Err() != nil }
	res, err := m.simulate(e, stop)
	if err != nil {
		return nil, err
	}
	if err := m.blame(res, e, stop); err != nil {
		return nil, err
	}
	res.Wall = time.Since(start)
	if res.Stopped {
		res.Summary.Verdict = Undecided
		return res, context.Cause(ctx)
	}
	return res, nil
}

// simulate runs m once, in the way that was chosen for it.
func (m *model) simulate(e Estimate, stop func() bool) (*Result, error) {
	if e.Scale > 1 {
		return m.runSample(e.Scale, stop)
	}
	return m.runOn(e.Engine, stop)
}

func (m *model) runOn(engine EngineKind, stop func() bool) (*Result, error) {
	if engine == Cohort {
		return m.runCohort(stop)
	}
	x, err := newExact(m)
	if err != nil {
		return nil, err
	}
	done := x.run(stop)
	res := x.rec.result(Exact)
	res.Events, res.Stopped = x.events, !done
	return res, nil
}

// Fits returns why the cohort engine cannot run s, or nil when it can.
func (s Scenario) Fits() error {
	m, err := compile(s)
	if err != nil {
		return err
	}
	if ok, why := cohortFits(m); !ok {
		return at("engine", "the cohort engine cannot run this scenario: %s", why)
	}
	return nil
}
