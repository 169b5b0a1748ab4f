package storm

import (
	"io"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// chart returns the pictures of r.
func (r *Result) chart() report.Chart {
	s := &r.Series
	return report.Chart{Title: r.Scenario, Subtitle: r.Headline(), Duration: r.Duration.D(), Fault: r.fault(), Panels: []report.Panel{
		{Title: "Arrivals: fresh, and with retries", Unit: "/s", Lines: []report.Line{
			{Name: "with retries", Color: report.Orange, Values: s.attempts(), Area: true},
			{Name: "fresh", Color: report.Teal, Values: s.Fresh, Area: true},
		}},
		{Title: "Goodput", Unit: "/s", Lines: []report.Line{
			{Name: "offered", Color: report.Grey, Values: s.Offered},
			{Name: "good", Color: report.Green, Values: s.Good, Area: true},
		}},
		{Title: "Multiplier", Unit: "x", Level: 1, Note: "no retries", Lines: []report.Line{
			{Name: "multiplier", Color: report.Orange, Values: s.Multiplier},
		}},
		{Title: "Latency of good calls", Unit: " ms", Lines: []report.Line{
			{Name: "p99", Color: report.Orange, Values: s.P99Float()},
			{Name: "p50", Color: report.Teal, Values: s.P50Float()},
		}},
		{Title: "Queue", Unit: " s", Lines: []report.Line{
			{Name: "queue", Color: report.Teal, Values: s.Queue, Area: true},
		}},
		{Title: "Budget used and breakers open", Level: 1, Note: "spent", Lines: []report.Line{
			{Name: "budget", Color: report.Orange, Values: s.Budget},
			{Name: "breaker", Color: report.Red, Values: s.Breaker, Area: true},
		}},
	}}
}

// WriteSVG writes the charts of r as one picture.
func (r *Result) WriteSVG(w io.Writer) error {
	c := r.chart()
	return c.WriteSVG(w)
}

// WriteCSV writes one line per bin.
func (r *Result) WriteCSV(w io.Writer) error {
	s := &r.Series
	const header = "t_s,offered,fresh,retry,good,failed,multiplier,p50_ms,p99_ms,queue_s,budget,breaker,wasted"
	return report.WriteCSV(w, header, len(s.Fresh), func(i int) []any {
		return []any{
			float64(i) * r.Bin.Seconds(), s.Offered[i], s.Fresh[i], s.Retry[i], s.Good[i], s.Failed[i], s.Multiplier[i],
			float64(s.P50[i]), float64(s.P99[i]), s.Queue[i], s.Budget[i], s.Breaker[i], s.Wasted[i],
		}
	})
}
