package storm

import (
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// MaxSteps is the number of steps of one fleet's load.
const MaxSteps = 10_000

// steps returns the load of f for the engine, or nil when it has one rate.
func (f *Fleet) steps() (all []model.Step) {
	for _, s := range f.Load {
		all = append(all, model.Step{At: int64(s.At), Rate: s.Rate})
	}
	return all
}

// stepped reports whether the load of any fleet changes in steps.
func (s *Scenario) stepped() bool {
	return slices.ContainsFunc(s.Fleets, func(f Fleet) bool { return f.Load != nil })
}

// mean returns the mean rate of an open loop in a run of that duration.
func (f *Fleet) mean(d Duration) float64 {
	m := model.Fleet{Rate: f.Rate, Load: f.steps()}
	return m.Mean(int64(d))
}

// scaled returns steps with k times the rate, and leaves them as they are.
func scaled(steps []Step, k float64) []Step {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Rate *= k
	}
	return steps
}

// load looks at the steps of a fleet. Those after the end of the run are no mistake: a
// study shortens a run.
func (c *checker) load(path string, steps []Step) {
	if len(steps) > MaxSteps {
		c.add(path, "has %d steps: at most %d", len(steps), MaxSteps)
		return
	}
	sum := 0.0
	for i, s := range steps {
		inner := fmt.Sprintf("%s[%d]", path, i)
		c.number(inner+".rate", s.Rate, 0, MaxRate)
		c.span(inner+".at", s.At, maxDuration)
		switch {
		case i == 0 && s.At != 0:
			c.add(inner+".at", "is %v: the first step is at 0s", s.At)
		case i > 0 && s.At <= steps[i-1].At:
			c.add(inner+".at", "%v is not after the step before, at %v", s.At, steps[i-1].At)
		}
		sum += s.Rate
	}
	if steps != nil && sum == 0 {
		c.add(path, "has no rate above 0")
	}
}
