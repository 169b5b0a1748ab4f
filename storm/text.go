package storm

import (
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear/storm/internal/report"
)

// textWidth is the width of a sparkline, in characters.
const textWidth = 72

// Headline says in one sentence how the run ended.
func (r *Result) Headline() string {
	s := &r.Summary
	switch s.Verdict {
	case Metastable:
		return fmt.Sprintf("METASTABLE: the fault is over and the trouble stays, with a load of %.2fx and a goodput of %.0f %%", s.FinalMultiplier, 100*s.FinalGoodput)
	case Recovered:
		if s.Recovery == 0 {
			return "recovered at once when the fault ended"
		}
		return fmt.Sprintf("recovered %.1f s after the fault ended", s.Recovery)
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
	if r.Trigger != nil {
		return fmt.Sprintf("steady: the fault lasts, with a goodput of %.0f %%", 100*min(s.FinalGoodput, 1)) // what was put off comes on top
	}
	return "steady"
}

// WriteText writes r for a terminal: the summary, a sparkline for each series,
// the services and the notes.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	step := ""
	if r.Step > 0 {
		step = ", step " + r.Step.String()
	}
	fmt.Fprintf(&b, "%s: %v simulated by the %s engine%s, seed %d\n%s\n\n", r.Scenario, r.Duration, r.Engine, step, r.Seed, r.Headline())
	s := &r.Summary
	fmt.Fprintf(&b, "calls %s   attempts %s   retries %s   good %s   failed %s\n",
		report.Amount(s.Calls), report.Amount(s.Attempts), report.Amount(s.Retries), report.Amount(s.Good), report.Amount(s.Failed))
	fmt.Fprintf(&b, "multiplier %.3f (peak %.2f)   wasted work %.1f %%   refused: budget %s, breaker %s\n",
		s.Multiplier, s.PeakMultiplier, 100*s.Wasted, report.Amount(s.BudgetRefused), report.Amount(s.BreakerRefused))
	if s.Postponed > 0 {
		fmt.Fprintf(&b, "put off, by budget or breaker: %s times\n", report.Amount(s.Postponed))
	}
	if s.FaultCost+s.BreakerCost > 0 {
		fmt.Fprintf(&b, "lost while the fault lasts: to the fault %.1f %% of the calls, to the breakers another %.1f %%\n", 100*s.FaultCost, 100*s.BreakerCost)
	}
	fmt.Fprintf(&b, "latency of good calls: p50 %.3g ms, p99 %.3g ms   longest queue %.3g s\n\n", s.P50, s.P99, s.MaxQueue)
	report.WriteRows(&b, r.Duration.D(), r.fault(), textWidth, r.rows()...)
	if len(r.Services) > 1 {
		fmt.Fprintf(&b, "\n%-16s %12s %10s %12s %8s %8s\n", "service", "arrivals", "per call", "served", "wasted", "queue s")
		for _, v := range r.Services {
			fmt.Fprintf(&b, "%-16s %12s %10.4g %12s %7.1f%% %8.3g\n", v.Name, report.Amount(v.Arrivals), v.PerCall,
				report.Amount(v.Served), 100*v.Wasted/max(v.Served, 1), v.MaxQueue)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rows returns the series of r that a text shows, with what they have in common
// on one scale.
func (r *Result) rows() []report.Row {
	s := &r.Series
	total := s.attempts()
	load := report.Peak(total)
	p99 := s.P99Float()
	rows := []report.Row{
		{Name: "attempts", Values: total, Top: load, Unit: "/s"},
		{Name: "retries", Values: s.Retry, Top: load, Unit: "/s"},
		{Name: "good", Values: s.Good, Top: report.Peak(s.Offered), Unit: "/s"},
		{Name: "multiplier", Values: s.Multiplier, Top: report.Peak(s.Multiplier), Unit: "x"},
		{Name: "p99", Values: p99, Top: report.Peak(p99), Unit: " ms"},
		{Name: "queue", Values: s.Queue, Top: report.Peak(s.Queue), Unit: " s"},
		{Name: "budget", Values: s.Budget, Top: 1},
	}
	if report.Peak(s.Breaker) > 0 {
		rows = append(rows, report.Row{Name: "breaker", Values: s.Breaker, Top: 1})
	}
	return rows
}
