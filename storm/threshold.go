package storm

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/forbear-go/forbear/storm/internal/parallel"
)

// Threshold is what [LeastTrigger] found: how long the first fault must last for the
// trouble to stay in half of the runs.
type Threshold struct {
	// Least is that length, found to within 3 %. Interval holds it with a confidence of
	// 95 %. Both are 0 unless Sticks.
	Least    Duration    `json:"least"`
	Interval [2]Duration `json:"interval"`
	// Open says that the interval has no upper end: too few runs of the longest fault
	// stay in trouble. Interval ends at Longest then.
	Open bool `json:"interval_open,omitzero"`
	// Sticks says that the trouble stays in at least half of the runs of the longest fault.
	Sticks bool `json:"sticks"`
	// Stuck of Seeds runs of the longest fault stay in trouble.
	Stuck int `json:"stuck"`
	Seeds int `json:"seeds"`
	// Shortest is the shortest fault after which any run stayed in trouble; 0 for none.
	Shortest Duration `json:"shortest"`
	// Longest is the longest fault that was tried.
	Longest Duration `json:"longest"`
	Runs    int      `json:"runs"`
	// Scale says that one of so many requests was run; 0 is all of them.
	Scale float64 `json:"scale,omitzero"`
}

// The seeds of a threshold: so many at a time, until the interval is short or there are
// enough.
const (
	seedsAtOnce   = 8
	mostSeeds     = 40
	shortInterval = 0.1 // of the answer
	runsForLeast  = 100 // that are usual, for the size of a sample
)

// never is the length of a fault that no run was stuck after.
const never = Duration(math.MaxInt64)

// LeastTrigger finds how long the first fault of s must last for the trouble to stay, by
// bisection for each of several seeds. Other faults keep their distance from its end. It
// tries up to longest (a minute when that is 0). progress, which may be nil, hears of
// the seeds.
func LeastTrigger(ctx context.Context, s Scenario, o Options, longest time.Duration, progress func(done, of int)) (Threshold, error) {
	s = s.WithDefaults()
	t := Threshold{Longest: Duration(cmp.Or(longest, time.Minute))}
	if len(s.Faults) == 0 {
		return t, at("faults", "is empty: add a fault")
	}
	if s.Faults[0].At+s.Faults[0].For >= s.Duration {
		return t, at("faults[0].for", errEndless)
	}
	o, err := s.lengthened(t.Longest).study(runsForLeast, o)
	if err != nil {
		return t, err
	}
	var edges []edge
	for len(edges) < mostSeeds {
		first := len(edges)
		found, err := parallel.Map(ctx, seedsAtOnce, func(done, _ int) {
			if progress != nil {
				progress(first+done, first+seedsAtOnce)
			}
		}, func(i int) (edge, error) { return s.reseeded(first+i).edge(ctx, o, t.Longest) })
		if err != nil {
			return t, err
		}
		edges = append(edges, found...)
		if t.sum(edges); t.sure() {
			break
		}
	}
	return t, nil
}

// sum says what all edges show. A bisection finds that a length is between two: the
// interval begins at the lower.
func (t *Threshold) sum(edges []edge) {
	*t = Threshold{Longest: t.Longest, Seeds: len(edges)}
	var lengths, below []Duration
	for _, e := range edges {
		lengths, below = append(lengths, e.length), append(below, e.below)
		t.Runs += e.runs
		t.Scale = max(t.Scale, e.scale)
		if e.length != never {
			t.Stuck++
		}
	}
	middle, _, high := median(lengths)
	_, low, _ := median(below)
	if t.Stuck > 0 {
		t.Shortest = lengths[0]
	}
	if t.Sticks = 2*t.Stuck >= t.Seeds; t.Sticks {
		t.Least, t.Interval, t.Open = middle, [2]Duration{low, min(high, t.Longest)}, high == never
	}
}

// sure reports whether more seeds are not worth their time: fewer than half of the runs
// stick, or the interval is short.
func (t *Threshold) sure() bool {
	return !t.Sticks || !t.Open && float64(t.Interval[1]-t.Interval[0]) <= shortInterval*float64(t.Least)
}

// edge is how long a fault must last for one seed, and the runs that it took.
type edge struct {
	// length is the shortest fault that was found to stick, and below the longest that was
	// found not to.
	length, below Duration
	runs          int
	scale         float64
}

// edge bisects the length of the first fault, up to longest, to within 3 %.
func (s Scenario) edge(ctx context.Context, o Options, longest Duration) (edge, error) {
	e := edge{length: never, below: longest}
	stays := func(d Duration) (bool, error) {
		r, err := Run(ctx, s.lengthened(d), o)
		if err != nil {
			return false, err
		}
		e.runs++
		e.scale = r.Scale
		return r.Summary.Verdict == Metastable, nil
	}
	// When the longest does not stick, none does: longer faults are worse.
	if ok, err := stays(longest); err != nil || !ok {
		return e, err
	}
	low, high := Duration(0), longest
	for high-low > max(high/32, Duration(10*time.Millisecond)) {
		middle := (low + high) / 2
		ok, err := stays(middle)
		if err != nil {
			return e, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	e.length, e.below = high, low
	return e, nil
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
	s.Bin = max(s.Bin, (s.Duration+maxBins-1)/maxBins) // a bin of a short run may be too narrow
	return s
}
