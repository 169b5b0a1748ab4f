package storm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/storm/internal/parallel"
	"github.com/forbear-go/forbear/storm/internal/report"
)

// Curve is what becomes of a scenario when more and more of the attempts fail.
type Curve struct {
	Scenario string `json:"scenario"`
	// Points are by rising Share.
	Points []Point `json:"points"`
}

// Point is one run of a curve. Shares are of 0 to 1; those of calls are counted
// while the fault lasts.
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
		return nil, at("faults", "is empty: there is nothing to fail more often")
	case s.Faults[0].Kind != Errors && s.Faults[0].Kind != Outage:
		return nil, at("faults[0].kind", "is %s: want errors or outage, which fail a share of the attempts", s.Faults[0].Kind)
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

// WriteText writes the curve for a terminal: one line for each share, with a bar
// of what ends well.
func (c *Curve) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s: what ends well, by the share of attempts that fail\n\n", c.Scenario)
	fmt.Fprintf(b, "%6s %8s %11s %11s %7s  %s\n", "fail", "good", "no breaker", "no retries", "load x", "verdict")
	for _, p := range c.Points {
		bar := strings.Repeat("█", int(40*p.Good+0.5))
		bar += strings.Repeat("░", int(40*p.Unguarded+0.5)-int(40*p.Good+0.5))
		line := fmt.Sprintf("%4.3g %% %7.1f%% %10.1f%% %10.1f%% %7.3f  %-14s %s",
			100*p.Share, 100*p.Good, 100*p.Unguarded, 100*(1-p.Share), p.Multiplier, p.Verdict, bar)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n█ ends well, ░ would without breakers\n")
	return b.Flush()
}

// WriteCSV writes one line per point.
func (c *Curve) WriteCSV(w io.Writer) error {
	return report.WriteCSV(w, "share,good,good_without_breakers,multiplier,verdict", len(c.Points), func(i int) []any {
		p := &c.Points[i]
		return []any{p.Share, p.Good, p.Unguarded, p.Multiplier, string(p.Verdict)}
	})
}

// WriteSVG draws the curve, above that without breakers and that without
// retries.
func (c *Curve) WriteSVG(w io.Writer) error {
	s := report.Shares{Title: c.Scenario, About: "calls that end well, by the share of attempts that fail", Lines: []report.Line{
		{Name: "without retries", Color: report.Grey, Dash: "2 4"},
		{Name: "without breakers", Color: report.Orange, Dash: "6 4"},
		{Name: "as configured", Color: report.Green, Dash: "none"},
	}}
	for _, p := range c.Points {
		s.At = append(s.At, p.Share)
		for i, v := range [...]float64{1 - p.Share, p.Unguarded, p.Good} {
			s.Lines[i].Values = append(s.Lines[i].Values, v)
		}
	}
	return s.WriteSVG(w)
}
