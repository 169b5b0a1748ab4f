package storm

import (
	"context"
	"slices"

	"github.com/forbear-go/forbear/storm/internal/parallel"
)

// Curve is what becomes of a scenario when more and more of the attempts fail.
type Curve struct {
	Scenario string `json:"scenario"`
	// Points are by rising Share.
	Points []Point `json:"points"`
}

// Point is one run of a curve. Shares are of 0 to 1; those of calls are of those
// that begin while the fault lasts.
type Point struct {
	// Share is that of the attempts that fail.
	Share float64 `json:"share"`
	// Good is the share of the calls that end well.
	Good float64 `json:"good"`
	// Unguarded is what ends well without circuit breakers.
	Unguarded  float64 `json:"good_without_breakers"`
	Multiplier float64 `json:"multiplier"`
	Verdict    Verdict `json:"verdict"`
}

// RunCurve runs s so many times, with the first fault failing from 1/points of
// the attempts to all of them. That fault must be of kind errors or outage.
// progress may be nil.
func RunCurve(ctx context.Context, s Scenario, points int, o Options, progress func(done, of int)) (*Curve, error) {
	s = s.WithDefaults()
	switch {
	case len(s.Faults) == 0:
		return nil, at("faults", "is empty: add a fault of kind errors or outage")
	case s.Faults[0].Kind != Errors && s.Faults[0].Kind != Outage:
		return nil, at("faults[0].kind", "is %s: want errors or outage", s.Faults[0].Kind)
	case points < 1 || points > MaxCells:
		return nil, at("points", "%d is outside 1 to %d", points, MaxCells)
	}
	o, err := s.study(points, o)
	if err != nil {
		return nil, err
	}
	all, err := parallel.Map(ctx, points, progress, func(i int) (Point, error) {
		share := float64(i+1) / float64(points)
		failing := s
		failing.Faults = slices.Clone(s.Faults)
		failing.Faults[0].Rate = share
		r, err := Run(ctx, failing, o)
		if err != nil {
			return Point{}, err
		}
		// Without breakers, more calls end well by what the breakers cost.
		calls, good, _ := r.during()
		good /= max(calls, 1)
		return Point{share, good, good + r.Summary.BreakerCost, r.Summary.Multiplier, r.Summary.Verdict}, nil
	})
	if err != nil {
		return nil, err
	}
	return &Curve{Scenario: s.Name, Points: all}, nil
}
