package storm

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/storm/internal/engine"
)

// Options are what a run is allowed to do. The zero value is fine.
type Options struct {
	// Force runs what would need more than MaxMemory or MaxTime.
	Force bool
	// Within is how long a run may take before [Auto] takes a sample instead. Default
	// 3 s, as long as a user at a terminal waits without wondering.
	Within time.Duration
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
	e := c.estimate(o)
	if err := e.refuse(o); err != nil {
		return nil, err
	}
	stop := func() bool { return ctx.Err() != nil }
	res, err := c.simulate(e, stop)
	if err != nil {
		return nil, err
	}
	if err := c.alone(res, e, stop); err != nil {
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

// alone finds out whether a run that is stuck would be so without its faults, which a load
// whose peak is too much does not say by itself. It takes another run.
func (c *compiled) alone(r *Result, e Estimate, stop func() bool) error {
	if r.Stopped || r.Summary.Verdict != Metastable || !c.s.stepped() || !c.m.Overloaded() {
		return nil
	}
	s := c.s
	s.Faults = nil
	bare, err := compile(s)
	if err != nil {
		return err
	}
	without, err := bare.simulate(e, stop)
	if err != nil {
		return err
	}
	r.Stopped = without.Stopped
	r.Events += without.Events
	if without.Summary.Verdict == Overloaded {
		r.Summary.Verdict = Overloaded
	}
	return nil
}

// simulate runs c once: whole, or the sample that was estimated.
func (c *compiled) simulate(e Estimate, stop func() bool) (*Result, error) {
	if e.Scale > 1 {
		return c.runSample(e.Scale, stop)
	}
	return c.result(engine.Run(c.m, stop)), nil
}
