package storm

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/storm/internal/engine"
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
	Events float64
	Memory float64 // bytes
	Time   time.Duration

	// Scale says that one of so many requests would be run; 0 is all.
	Scale float64
}

// TooLargeError refuses a run that would need too much.
type TooLargeError struct{ Estimate Estimate }

// Error says what the run would need, and what is allowed.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the run would need about %s and %v (%.3g events), over the limit of %s and %v",
		bytesText(e.Estimate.Memory), e.Estimate.Time.Round(time.Second),
		e.Estimate.Events, bytesText(MaxMemory), MaxTime)
}

// bytesText writes a number of bytes for people.
func bytesText(b float64) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.0f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", b/(1<<30))
}

// Estimate returns what a run of s would need.
func (s Scenario) Estimate(o Options) (Estimate, error) {
	c, err := compile(s)
	if err != nil {
		return Estimate{}, err
	}
	return c.estimate(o), nil
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

// studyTime is how long all runs of a study may take together before they are samples.
const studyTime = 40 * time.Second

// study returns the options for each of n runs of which s is the largest, or refuses
// them. All of them together are held to the limits of one run.
func (s Scenario) study(n int, o Options) (Options, error) {
	o.Within = min(o.within(), studyTime/time.Duration(n))
	e, err := s.Estimate(o)
	if err != nil {
		return o, err
	}
	return o, e.times(n).refuse(o)
}

func (o Options) within() time.Duration { return cmp.Or(o.Within, 3*time.Second) }

// estimate returns what a run of c needs: whole, or as a sample where that would take
// too long. With breakers there may be a second run without them, and one without the
// faults where the load has peaks.
func (c *compiled) estimate(o Options) Estimate {
	e := costOf(c.m)
	if c.s.Engine == Auto {
		if k := c.sampleScale(e, o.within()); k > 1 {
			if small, err := compile(c.s.sampled(k)); err == nil {
				e = costOf(small.m)
				e.Scale = k
			}
		}
	}
	runs := 1
	if c.m.Guarded() {
		runs++
	}
	if len(c.s.Faults) > 0 && c.s.stepped() && c.m.Overloaded() {
		runs++
	}
	return e.times(runs)
}

// costOf returns what a run of all of m needs.
func costOf(m *model.Model) Estimate {
	events, memory, took := engine.Cost(m)
	return Estimate{Events: events, Memory: memory, Time: took}
}
