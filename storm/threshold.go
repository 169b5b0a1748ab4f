package storm

import (
	"cmp"
	"context"
	"time"
)

// Threshold is what [LeastTrigger] found.
type Threshold struct {
	// Least is the shortest fault, to within Precision, after which the
	// trouble stays; meaningless unless Sticks.
	Least     Duration `json:"least"`
	Precision Duration `json:"precision"`
	Sticks    bool     `json:"sticks"`
	// Longest is the longest fault that was tried.
	Longest Duration `json:"longest"`
	Runs    int      `json:"runs"`
}

// LeastTrigger finds by bisection how long the first fault of s must last for
// the trouble to stay. Other faults keep their distance from its end. It tries
// up to longest (a minute when that is 0).
func LeastTrigger(ctx context.Context, s Scenario, o Options, longest time.Duration) (Threshold, error) {
	s = s.WithDefaults()
	t := Threshold{Longest: Duration(cmp.Or(longest, time.Minute))}
	if len(s.Faults) == 0 {
		return t, at("faults", "is empty: add a fault")
	}
	if s.Faults[0].At+s.Faults[0].For >= s.Duration {
		return t, at("faults[0].for", errEndless)
	}
	t.Precision = max(t.Longest/512, Duration(10*time.Millisecond))
	stays := func(d Duration) (bool, error) {
		r, err := Run(ctx, s.lengthened(d), o)
		if err != nil {
			return false, err
		}
		t.Runs++
		return r.Summary.Verdict == Metastable, nil
	}
	// When the longest does not stick, none does: longer faults are worse.
	low, high := Duration(0), t.Longest
	ok, err := stays(high)
	if err != nil || !ok {
		return t, err
	}
	t.Sticks = true
	for high-low > t.Precision {
		middle := (low + high) / 2
		if ok, err = stays(middle); err != nil {
			return t, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	t.Least = high
	return t, nil
}

// errEndless refuses a scenario in which nothing comes after the fault.
const errEndless = "lasts to the end of the run: end it earlier, or ask for the curve of its share"

// lengthened returns s with a first fault of length d, and as much time after
// it as s has: a verdict on a longer fault needs as long a look. Faults that begin
// when the first is over keep their distance from it.
func (s Scenario) lengthened(d Duration) Scenario {
	faults := append([]Fault(nil), s.Faults...)
	more := d - faults[0].For
	faults[0].For = d
	for i := 1; i < len(faults); i++ {
		if faults[i].At >= s.Faults[0].At+s.Faults[0].For {
			faults[i].At += more
		}
	}
	s.Faults = faults
	s.Duration += more
	return s
}
