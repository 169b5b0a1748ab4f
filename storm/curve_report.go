package storm

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// WriteText writes the curve for a terminal: one line for each share, with a bar
// of what ends well.
func (c *Curve) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s: successful calls, by the share of attempts that fail\n\n", c.Scenario)
	fmt.Fprintf(b, "%6s %8s %11s %11s %7s  %s\n", "fail", "good", "no breaker", "no retries", "load x", "verdict")
	for _, p := range c.Points {
		bar := strings.Repeat("█", int(40*p.Good+0.5))
		bar += strings.Repeat("░", max(0, int(40*p.Unguarded+0.5)-int(40*p.Good+0.5)))
		line := fmt.Sprintf("%4.3g %% %7.1f%% %10.1f%% %10.1f%% %7.3f  %-14s %s",
			100*p.Share, 100*p.Good, 100*p.Unguarded, 100*(1-p.Share), p.Multiplier, p.Verdict, bar)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n█ succeeds, ░ would succeed without breakers\n")
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
	s := report.Shares{Title: c.Scenario, About: "successful calls, by the share of attempts that fail", Lines: []report.Line{
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
