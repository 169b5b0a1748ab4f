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

// Run simulates s, once more without its faults when the trouble stays after them, and
// once more without circuit breakers when they turned calls away: see [Overloaded] and
// [SelfInflicted]. It refuses a scenario with mistakes ([FieldErrors]
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
	for _, again := range []func(*Result, Estimate, func() bool) error{c.alone, c.blame} {
		if err := again(res, e, stop); err != nil {
			return nil, err
		}
	}
	if res.Stopped {
		res.Summary.Verdict = Undecided
		return res, context.Cause(ctx)
	}
	return res, nil
}

// simulate runs c once: whole, or the sample that was estimated.
func (c *compiled) simulate(e Estimate, stop func() bool) (*Result, error) {
	if e.Scale > 1 {
		return c.runSample(e.Scale, stop)
	}
	return c.result(engine.Run(c.m, stop)), nil
}

// alone looks whether a run that is still in trouble after its faults would be in trouble
// without them, too. It takes a second run.
func (c *compiled) alone(r *Result, e Estimate, stop func() bool) error {
	if v := r.Summary.Verdict; r.Stopped || r.Trigger == nil || r.Trigger[1] >= r.Duration || v != Metastable && v != Undecided {
		return nil
	}
	s := c.s
	s.Faults = nil
	quiet, err := compile(s)
	if err != nil {
		return err
	}
	without, err := quiet.simulate(e, stop)
	if err != nil {
		return err
	}
	r.Stopped = without.Stopped
	r.Events += without.Events
	if v := without.Summary.Verdict; v == Overloaded || v == Limited {
		r.Summary.Verdict = v
	}
	return nil
}
