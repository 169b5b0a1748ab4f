package storm

import (
	"bufio"
	"fmt"
	"io"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// WriteComparison writes results side by side for a terminal: a table, and below it
// a sparkline of the attempts and one of the goodput for each. All share one scale,
// so that the eye can compare them.
func WriteComparison(w io.Writer, all []Compared) error {
	b := bufio.NewWriter(w)
	if len(all) > 0 {
		r := all[0].Result
		fmt.Fprintf(b, "%s: %v simulated, seed %d\n\n", r.Scenario, r.Duration, r.Seed)
	}
	fmt.Fprintf(b, "%-22s %-14s %9s %7s %6s %9s %8s %9s %7s\n",
		"", "verdict", "recovery", "load x", "peak", "good", "wasted", "p99 ms", "queue s")
	for _, c := range all {
		s := &c.Result.Summary
		recovery := "never"
		if s.Recovery >= 0 {
			recovery = fmt.Sprintf("%.1f s", s.Recovery)
		}
		fmt.Fprintf(b, "%-22s %-14s %9s %7.3f %6.2f %8.2f%% %7.1f%% %9s %7s\n", c.Variant.Title, s.Verdict, recovery,
			s.Multiplier, s.PeakMultiplier, 100*s.Good/max(s.Calls, 1), 100*s.Wasted, report.Plain(float64(s.P99)), report.Plain(s.MaxQueue))
	}
	// One scale for all attempts, and one for all goodput.
	b.WriteString("\nattempts per second (same scale), then good calls\n")
	top, good := 0.0, 0.0
	for _, c := range all {
		top = max(top, report.Peak(c.Result.Series.attempts()))
		good = max(good, report.Peak(c.Result.Series.Offered))
	}
	for _, c := range all {
		s := &c.Result.Series
		fmt.Fprintf(b, "%-22s %s\n%-22s %s\n", c.Variant.Title, report.Sparkline(s.attempts(), textWidth, top), "", report.Sparkline(s.Good, textWidth, good))
	}
	for _, n := range notes(all) {
		fmt.Fprintf(b, "\nnote: %s\n", n)
	}
	return b.Flush()
}

// notes returns the notes of all results, each once, with the variant that has it
// first.
func notes(all []Compared) (out []string) {
	seen := map[string]bool{}
	for _, c := range all {
		for _, n := range c.Result.Notes {
			if !seen[n] {
				seen[n] = true
				out = append(out, c.Variant.Title+": "+n)
			}
		}
	}
	return out
}

// WriteHTML writes a report on one or more results as a page that needs
// nothing else.
func WriteHTML(w io.Writer, title, about string, all []Compared) error {
	page := report.Page{Title: title, About: about, Columns: []string{"recovery", "load", "peak", "good", "wasted", "p50", "p99", "queue"}}
	for _, c := range all {
		r, s := c.Result, &c.Result.Summary
		recovery := "never"
		if s.Recovery >= 0 {
			recovery = report.Amount(s.Recovery) + " s"
		}
		page.Runs = append(page.Runs, report.Run{
			Name: c.Variant.Title, Headline: r.Headline(), Verdict: string(s.Verdict), Origin: r.origin(), Notes: r.Notes, Chart: r.chart(),
			Cells: []string{
				recovery, report.Amount(s.Multiplier) + "x", report.Amount(s.PeakMultiplier) + "x",
				report.Amount(100*s.Good/max(s.Calls, 1)) + " %", report.Amount(100*s.Wasted) + " %",
				report.Latency(float64(s.P50)), report.Latency(float64(s.P99)), report.Amount(s.MaxQueue) + " s",
			},
		})
	}
	return page.WriteHTML(w)
}
