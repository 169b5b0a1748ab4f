package storm

import (
	"context"

	"github.com/forbear-go/forbear/storm/internal/cohort"
	"github.com/forbear-go/forbear/storm/internal/exact"
)

// Options are what a run is allowed to do. The zero value is fine.
type Options struct {
	// Force runs what would need more than MaxMemory or MaxTime.
	Force bool
}

// Run simulates s, and once more without circuit breakers when they turned calls
// away: see [SelfInflicted]. It refuses a scenario with mistakes ([FieldErrors]
// lists them) and, with a [*TooLargeError], one that is too large. When ctx ends,
// the result so far is returned with Stopped set, and the context's error.
func Run(ctx context.Context, s Scenario, o Options) (*Result, error) {
	c, err := compile(s)
	if err != nil {
		return nil, err
	}
	e := c.choose()
	if err := e.refuse(o); err != nil {
		return nil, err
	}
	stop := func() bool { return ctx.Err() != nil }
	res, err := c.simulate(e, stop)
	if err != nil {
		return nil, err
	}
	if err := c.blame(res, e, stop); err != nil {
		return nil, err
	}
	if res.Stopped {
		res.Summary.Verdict = Undecided
		return res, context.Cause(ctx)
	}
	return res, nil
}

// simulate runs c once, in the way that was chosen for it.
func (c *compiled) simulate(e Estimate, stop func() bool) (*Result, error) {
	if e.Scale > 1 {
		return c.runSample(e.Scale, stop)
	}
	return c.runOn(e.Engine, stop)
}

// runOn runs c once, whole, on one engine.
func (c *compiled) runOn(engine EngineKind, stop func() bool) (*Result, error) {
	run := exact.Run
	if engine == Cohort {
		if err := c.fits(); err != nil {
			return nil, err
		}
		run = cohort.Run
	}
	return c.result(engine, run(c.m, stop)), nil
}

// Fits returns why the cohort engine cannot run s, or nil when it can.
func (s Scenario) Fits() error {
	c, err := compile(s)
	if err != nil {
		return err
	}
	return c.fits()
}

// fits returns why the cohort engine cannot run c, or nil.
func (c *compiled) fits() error {
	if why := cohort.Unfit(c.m); why != "" {
		return at("engine", "the cohort engine cannot run this scenario: %s", why)
	}
	return nil
}
