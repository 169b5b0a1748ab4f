package storm

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// textWidth is the width of a sparkline, in characters: with its name before it and
// its peak behind, a line fits into 100 columns.
const textWidth = 72

// Headline says in one sentence how the run ended.
func (r *Result) Headline() string {
	s := &r.Summary
	switch s.Verdict {
	case Metastable:
		return fmt.Sprintf("METASTABLE: the fault is over but the service does not recover, with %.2f attempts a call and a goodput of %.0f %% at the end", s.FinalMultiplier, 100*s.FinalGoodput)
	case Recovered:
		when := "at once when the fault ended"
		if s.Recovery > 0 {
			when = fmt.Sprintf("%.1f s after the fault ended", s.Recovery)
		}
		// Less than the fault costs is no alarm, and much all the same.
		if s.BreakerCost >= 0.05 {
			when += fmt.Sprintf("; meanwhile breakers cost %.0f %% of the calls", 100*s.BreakerCost)
		}
		return "recovered " + when
	case Limited:
		return fmt.Sprintf("LIMITED: max_concurrent of the clients, and the breakers that it opens, turn away %.0f %% of the calls",
			100*(s.ConcurrencyRefused+s.BreakerRefused)/max(s.Calls, 1))
	case Overloaded:
		return fmt.Sprintf("OVERLOADED, with or without a fault: goodput %.0f %%", 100*s.FinalGoodput)
	case Undecided:
		if r.Trigger != nil && r.Trigger[1] >= r.Duration {
			return "undecided: the fault lasts to the end of the run"
		}
		return "undecided: the run ends too soon after the fault"
	case SelfInflicted:
		return fmt.Sprintf("SELF-INFLICTED: the fault costs %.0f %% of the calls while it lasts, and the breakers another %.0f %%", 100*s.FaultCost, 100*s.BreakerCost)
	}
	// A run with a fault is steady only when the fault lasts to its end.
	if r.Trigger != nil {
		return fmt.Sprintf("steady: the fault lasts, with a goodput of %.0f %%", 100*min(s.FinalGoodput, 1)) // postponed calls come on top
	}
	if good := s.Good / max(s.Calls-s.Open, 1); good < recoveredAt {
		return fmt.Sprintf("steady at the end; %.0f %% of all calls ended well", 100*good)
	}
	return "steady"
}

// WriteText writes r for a terminal: the summary, a sparkline for each series,
// the services and the notes.
func (r *Result) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s: %v simulated, %s\n%s\n\n", r.Scenario, r.Duration, r.origin(), r.Headline())
	// Lines that would say nothing are left out.
	s := &r.Summary
	fmt.Fprintf(b, "calls %s = good %s + failed %s + under way at the end %s\n",
		report.Count(s.Calls), report.Count(s.Good), report.Count(s.Failed), report.Count(s.Open))
	fmt.Fprintf(b, "attempts %s, of which retries %s   multiplier %.3f attempts a call (peak %.2f in a second)\n",
		report.Count(s.Attempts), report.Count(s.Retries), s.Multiplier, s.PeakMultiplier)
	fmt.Fprintf(b, "failed by reason: %s   wasted work %.1f %%\n", s.reasons(), 100*s.Wasted)
	if s.Postponed > 0 {
		fmt.Fprintf(b, "postponed by budget or breaker: %s times\n", report.Count(s.Postponed))
	}
	if s.FaultCost != 0 || s.BreakerCost != 0 {
		of, effect := "the calls", "cost another"
		if r.Trigger != nil {
			of = "the calls that begin during the fault"
		}
		if s.BreakerCost < 0 {
			effect = "save"
		}
		fmt.Fprintf(b, "without breakers %.1f %% of %s fail; breakers %s %.1f %%\n", 100*s.FaultCost, of, effect, 100*math.Abs(s.BreakerCost))
	}
	fmt.Fprintf(b, "latency of good calls: p50 %s, p99 %s   longest queue %s s of work at full capacity\n\n", report.Latency(float64(s.P50)), report.Latency(float64(s.P99)), report.Plain(s.MaxQueue))
	report.WriteRows(b, r.Duration.D(), r.faults(), textWidth, r.rows()...)
	if len(r.Services) > 1 {
		fmt.Fprintf(b, "\n%-16s %12s %10s %12s %8s %8s\n", "service", "arrivals", "per call", "served", "wasted", "queue s")
		for _, v := range r.Services {
			fmt.Fprintf(b, "%-16s %12s %10.4g %12s %7.1f%% %8s\n", v.Name, report.Amount(v.Arrivals), v.PerCall,
				report.Amount(v.Served), 100*v.Wasted/max(v.Served, 1), report.Plain(v.MaxQueue))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "\nnote: %s\n", n)
	}
	return b.Flush()
}

// origin says what a run was made of: its seed, and how much of it was run.
func (r *Result) origin() string {
	if r.Scale > 1 {
		return fmt.Sprintf("1 of every %s requests, seed %d", report.Amount(r.Scale), r.Seed)
	}
	return fmt.Sprintf("every request, seed %d", r.Seed)
}

// rows returns the series of r that a text shows, with what they have in common
// on one scale: retries are a part of the attempts, goodput of what was offered.
// Breakers have a row when one was open.
func (r *Result) rows() []report.Row {
	s := &r.Series
	total := s.attempts()
	load := report.Peak(total)
	rows := []report.Row{
		{Name: "attempts", Values: total, Top: load, Unit: "/s"},
		{Name: "retries", Values: s.Retry, Top: load, Unit: "/s"},
		{Name: "good", Values: s.Good, Top: report.Peak(s.Offered), Unit: "/s"},
		{Name: "multiplier", Values: s.Multiplier, Top: report.Peak(s.Multiplier), Unit: "x"},
		{Name: "p99", Values: s.P99, Top: report.Peak(s.P99), Unit: " ms"},
		{Name: "queue", Values: s.Queue, Top: report.Peak(s.Queue), Unit: " s"},
		{Name: "budget", Values: percent(s.Budget), Top: 100, Unit: " % used"},
	}
	if report.Peak(s.Breaker) > 0 {
		rows = append(rows, report.Row{Name: "breaker", Values: percent(s.Breaker), Top: 100, Unit: " % open"})
	}
	return rows
}

// percent returns shares as parts of 100.
func percent(shares []float64) []float64 {
	all := slices.Clone(shares)
	scale(all, 100)
	return all
}

// reasons lists why calls failed, the most frequent first.
func (s *Summary) reasons() string {
	names := slices.SortedFunc(maps.Keys(s.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Reasons[b], s.Reasons[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] += " " + report.Count(s.Reasons[name])
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// chart returns the pictures of r, from the cause (arrivals) to the effect. The
// multiplier has a line at 1, where no attempt is a retry; the budget at 1, where it
// is spent.
func (r *Result) chart() report.Chart {
	s := &r.Series
	return report.Chart{Title: r.Scenario, Subtitle: r.Headline(), Duration: r.Duration.D(), Faults: r.faults(), Panels: []report.Panel{
		{Title: "Attempts per second", Unit: "/s", Lines: []report.Line{
			{Name: "with retries", Color: report.Orange, Values: s.attempts(), Area: true},
			{Name: "first attempts", Color: report.Teal, Values: s.Fresh, Area: true},
		}},
		{Title: "Goodput", Unit: "/s", Lines: []report.Line{
			{Name: "all calls", Color: report.Grey, Values: s.Offered},
			{Name: "good calls", Color: report.Green, Values: s.Good, Area: true},
		}},
		{Title: "Multiplier", Unit: "x", Level: 1, Note: "no retries", Lines: []report.Line{
			{Name: "multiplier", Color: report.Orange, Values: s.Multiplier},
		}},
		{Title: "Latency of good calls", Unit: " ms", Lines: []report.Line{
			{Name: "p99", Color: report.Orange, Values: s.P99},
			{Name: "p50", Color: report.Teal, Values: s.P50},
		}},
		{Title: "Queue", Unit: " s", Lines: []report.Line{
			{Name: "queue", Color: report.Teal, Values: s.Queue, Area: true},
		}},
		{Title: "Budget used and breakers open", Level: 1, Note: "spent", Lines: []report.Line{
			{Name: "budget used", Color: report.Orange, Values: s.Budget},
			{Name: "breakers open", Color: report.Red, Values: s.Breaker, Area: true},
		}},
	}}
}

// WriteSVG writes the charts of r as one picture.
func (r *Result) WriteSVG(w io.Writer) error {
	c := r.chart()
	return c.WriteSVG(w)
}

// WriteCSV writes one line per bin, at the time of its begin. A latency without
// good calls is an empty cell.
func (r *Result) WriteCSV(w io.Writer) error {
	s := &r.Series
	const header = "t_s,offered,fresh,retry,good,failed,multiplier,p50_ms,p99_ms,queue_s,budget,breaker,wasted"
	return report.WriteCSV(w, header, len(s.Fresh), func(i int) []any {
		return []any{
			float64(i) * r.Bin.Seconds(), s.Offered[i], s.Fresh[i], s.Retry[i], s.Good[i], s.Failed[i], s.Multiplier[i],
			s.P50[i], s.P99[i], s.Queue[i], s.Budget[i], s.Breaker[i], s.Wasted[i],
		}
	})
}
