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

// Run simulates s. It refuses a scenario with mistakes ([FieldErrors] lists
// them) and, with a [*TooLargeError], one that is too large. When ctx ends, the
// result so far is returned with Stopped set, and the context's error.
func Run(ctx context.Context, s Scenario, o Options) (*Result, error) {
	m, err := compile(s)
	if err != nil {
		return nil, err
	}
	return m.run(ctx, o)
}

func (m *model) run(ctx context.Context, o Options) (*Result, error) {
	e := choose(m)
	if !o.Force && (e.Memory > MaxMemory || e.Time > MaxTime) {
		return nil, &TooLargeError{e}
	}
	start := time.Now()
	stop := func() bool { return ctx.Err() != nil }
	var res *Result
	var err error
	if e.Scale > 1 {
		res, err = m.runSample(e.Scale, stop)
	} else {
		res, err = m.runOn(e.Engine, stop)
	}
	if err != nil {
		return nil, err
	}
	res.Wall = time.Since(start)
	if res.Stopped {
		res.Summary.Verdict = Undecided
		return res, context.Cause(ctx)
	}
	return res, nil
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
