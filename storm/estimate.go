package storm

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear/storm/internal/cohort"
	"github.com/forbear-go/forbear/storm/internal/exact"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// Limits of a run without [Options.Force].
const (
	// MaxMemory is in bytes.
	MaxMemory = 2 << 30
	// MaxTime is that of a run, or of all runs of a study together.
	MaxTime = 10 * time.Minute
)

// Estimate is what a run would need, at most. It errs on the high side: it assumes
// that every call fails as often as its policy allows.
type Estimate struct {
	Engine EngineKind
	Events float64 // or steps of the cohort engine
	Memory float64 // bytes
	Time   time.Duration

	// Scale is one of how many requests the exact engine would run; 0 is all.
	Scale float64
}

// TooLargeError refuses a run that would need too much.
type TooLargeError struct{ Estimate Estimate }

// Error says what the run would need, and what is allowed.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s engine would need about %s and %v (%.3g events): at most %s and %v unless forced",
		e.Estimate.Engine, bytesText(e.Estimate.Memory), e.Estimate.Time.Round(time.Second),
		e.Estimate.Events, bytesText(MaxMemory), MaxTime)
}

// bytesText writes a number of bytes for people.
func bytesText(b float64) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.0f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", b/(1<<30))
}

// Estimate returns what a run of s would need with its engine; with Auto, with
// the engine that would be chosen.
func (s Scenario) Estimate() (Estimate, error) {
	c, err := compile(s)
	if err != nil {
		return Estimate{}, err
	}
	return c.choose(), nil
}

// times returns the estimate of n such runs, one after the other.
func (e Estimate) times(n int) Estimate {
	e.Events *= float64(n)
	e.Time = time.Duration(min(float64(e.Time)*float64(n), 1e17))
	return e
}

// refuse returns a [*TooLargeError] for what is too much and not forced, else nil.
func (e Estimate) refuse(o Options) error {
	if !o.Force && (e.Memory > MaxMemory || e.Time > MaxTime) {
		return &TooLargeError{e}
	}
	return nil
}

// study returns the engine for n runs of which s is the largest, or refuses them. All
// of them together are held to the limits of one run.
func (s Scenario) study(n int, o Options) (EngineKind, error) {
	e, err := s.Estimate()
	if err != nil {
		return "", err
	}
	return e.Engine, e.times(n).refuse(o)
}

// choose returns the estimate of the engine that the scenario asks for. With
// breakers there may be a second run without them.
func (c *compiled) choose() Estimate {
	e := c.chooseEngine()
	if c.m.Guarded() {
		e = e.times(2)
	}
	return e
}

// chooseEngine returns the estimate of one run. Auto prefers the exact engine while
// it is quick; then the cohort engine, where the scenario fits it; then a sample.
func (c *compiled) chooseEngine() Estimate {
	single, mass := estimate(Exact, exact.Cost(c.m)), estimate(Cohort, cohort.Cost(c.m))
	switch c.s.Engine {
	case Exact:
		return single
	case Cohort:
		return mass
	}
	if c.fits() == nil {
		if single.Time <= affordable && single.Memory <= MaxMemory {
			return single
		}
		return mass
	}
	if k := c.sampleScale(single); k > 1 {
		if small, err := compile(c.s.sampled(k)); err == nil {
			single = estimate(Exact, exact.Cost(small.m))
			single.Scale = k
		}
	}
	return single
}

// estimate returns the cost of one run on an engine.
func estimate(engine EngineKind, c model.Cost) Estimate {
	return Estimate{Engine: engine, Events: c.Events, Memory: c.Memory, Time: c.Time}
}
