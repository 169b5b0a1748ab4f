package storm

import (
	"cmp"
	"context"
	"time"
)

// Sweep is a map of what becomes of a scenario under other loads and longer or
// shorter triggers.
type Sweep struct {
	Scenario string `json:"scenario"`
	// Loads are factors on the fleets' load; Triggers are lengths of the first
	// fault.
	Loads    []float64   `json:"loads"`
	Triggers []Duration  `json:"triggers"`
	Cells    [][]Cell    `json:"cells"` // by load, then trigger
	Options  SweepBounds `json:"bounds"`
}

// Cell is what some runs of one load and one length of the fault came to.
type Cell struct {
	// Verdict is that of most runs; of two that are as frequent, the worse.
	Verdict Verdict `json:"verdict"`
	// Stuck of Runs are metastable, and Interval holds the share of all runs that are,
	// 0 to 1, with a confidence of 95 %.
	Stuck    int        `json:"stuck"`
	Runs     int        `json:"runs"`
	Interval [2]float64 `json:"stuck_interval"`
	// Recovery is the mean of the runs that recover, in seconds; -1 when none does.
	Recovery float64 `json:"recovery_s"`
	// Multiplier and Goodput are the means of all runs.
	Multiplier float64 `json:"multiplier"`
	Goodput    float64 `json:"final_goodput"`
}

// SweepBounds say what a sweep covers. Zero fields have defaults: loads from
// 0.5 to 1.5 times the scenario's, triggers up to 20 s, 11 and 12 of them.
type SweepBounds struct {
	LoadFrom float64  `json:"load_from"`
	LoadTo   float64  `json:"load_to"`
	Loads    int      `json:"loads"`
	Longest  Duration `json:"longest"`
	Triggers int      `json:"triggers"`
}

// MaxCells bounds the cells of a sweep, of 3 to 12 runs each, and the runs of a curve. Many
// runs are small samples; what they need together is estimated all the same.
const MaxCells = 10_000

// withDefaults returns b with its zero fields filled in.
func (b SweepBounds) withDefaults() SweepBounds {
	if b.LoadFrom == 0 && b.LoadTo == 0 {
		b.LoadFrom, b.LoadTo = 0.5, 1.5
	}
	b.Loads = cmp.Or(b.Loads, 11) // with one of 1
	b.Triggers = cmp.Or(b.Triggers, 12)
	b.Longest = cmp.Or(b.Longest, Duration(20*time.Second))
	return b
}

// RunSweep runs s for every load and trigger length, on all processors: with three
// seeds, and with twelve where the outcome changes. progress may be nil; it hears of the
// first round and then of both together. Before the first run it refuses, with a
// [*TooLargeError], a sweep that would need too much.
func RunSweep(ctx context.Context, s Scenario, b SweepBounds, o Options, progress func(done, of int)) (*Sweep, error) {
	s, b = s.WithDefaults(), b.withDefaults()
	switch {
	case len(s.Faults) == 0:
		return nil, at("faults", "is empty: add a fault")
	case s.Faults[0].At+s.Faults[0].For >= s.Duration:
		return nil, at("faults[0].for", errEndless)
	case b.Loads < 1 || b.Triggers < 1 || b.Loads*b.Triggers > MaxCells:
		return nil, at("bounds", "%d loads x %d triggers: want 1 to %d cells", b.Loads, b.Triggers, MaxCells)
	case b.LoadFrom <= 0 || b.LoadTo < b.LoadFrom:
		return nil, at("bounds", "load factors from %v to %v are not a range above 0", b.LoadFrom, b.LoadTo)
	case b.Longest <= 0:
		return nil, at("bounds", "the longest trigger %v is not positive", b.Longest)
	}
	w := &Sweep{Scenario: s.Name, Options: b}
	// Loads are spread from end to end; triggers begin at a part of the longest, as a
	// fault of no length is none.
	for i := range b.Loads {
		w.Loads = append(w.Loads, b.LoadFrom+(b.LoadTo-b.LoadFrom)*float64(i)/float64(max(b.Loads-1, 1)))
	}
	for i := range b.Triggers {
		w.Triggers = append(w.Triggers, b.Longest*Duration(i+1)/Duration(b.Triggers))
	}
	// The last load and trigger are the greatest.
	largest := s.loaded(w.Loads[b.Loads-1]).lengthened(w.Triggers[b.Triggers-1])
	o, err := largest.study(2*fewSeeds*b.Loads*b.Triggers, o)
	if err != nil {
		return nil, err
	}
	return w, w.fill(ctx, s, o, progress)
}

// whole returns k times n, rounded. What there is does not vanish, and what is not
// positive stays as it is, for validation to refuse.
func whole(n int, k float64) int {
	if n <= 0 {
		return n
	}
	return max(1, int(float64(n)*k+0.5))
}

// loaded returns s with k times the load, of open and closed loops and of bursts.
// The services stay as large as they are.
func (s Scenario) loaded(k float64) Scenario {
	s.Fleets = append([]Fleet(nil), s.Fleets...)
	for i := range s.Fleets {
		f := &s.Fleets[i]
		f.Rate *= k
		f.Load = scaled(f.Load, k)
		f.Users = whole(f.Users, k)
		f.Burst = whole(f.Burst, k)
	}
	return s
}
