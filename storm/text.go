package storm

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const sparks = "▁▂▃▄▅▆▇█"

// sparkline draws values in width characters, from 0 to top. Where there is no
// value it leaves a space.
func sparkline(values []float64, width int, top float64) string {
	var b strings.Builder
	levels := []rune(sparks)
	for i := range min(width, len(values)) {
		from, to := i*len(values)/width, (i+1)*len(values)/width
		if len(values) < width {
			from, to = i, i+1
		}
		peak := math.NaN()
		for _, v := range values[from:max(to, from+1)] {
			if !math.IsNaN(v) && !(v < peak) {
				peak = v
			}
		}
		switch {
		case math.IsNaN(peak):
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune(levels[0])
		default:
			n := int(peak / top * float64(len(levels)))
			b.WriteRune(levels[max(0, min(n, len(levels)-1))])
		}
	}
	return b.String()
}

func plain(n []number) []float64 {
	out := make([]float64, len(n))
	for i, v := range n {
		out[i] = float64(v)
	}
	return out
}

func peak(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	return top
}

// amount writes a number for people: 1,234 or 1.23 M.
func amount(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e9:
		return fmt.Sprintf("%.3g G", v/1e9)
	case a >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.3g k", v/1e3)
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

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
		amount(s.Calls), amount(s.Attempts), amount(s.Retries), amount(s.Good), amount(s.Failed))
	fmt.Fprintf(&b, "multiplier %.3f (peak %.2f)   wasted work %.1f %%   refused: budget %s, breaker %s\n",
		s.Multiplier, s.PeakMultiplier, 100*s.Wasted, amount(s.BudgetRefused), amount(s.BreakerRefused))
	if s.Postponed > 0 {
		fmt.Fprintf(&b, "put off, by budget or breaker: %s times\n", amount(s.Postponed))
	}
	if s.FaultCost+s.BreakerCost > 0 {
		fmt.Fprintf(&b, "lost while the fault lasts: to the fault %.1f %% of the calls, to the breakers another %.1f %%\n", 100*s.FaultCost, 100*s.BreakerCost)
	}
	fmt.Fprintf(&b, "latency of good calls: p50 %.3g ms, p99 %.3g ms   longest queue %.3g s\n\n", s.P50, s.P99, s.MaxQueue)
	r.sparklines(&b, 72)
	if len(r.Services) > 1 {
		fmt.Fprintf(&b, "\n%-16s %12s %10s %12s %8s %8s\n", "service", "arrivals", "per call", "served", "wasted", "queue s")
		for _, v := range r.Services {
			fmt.Fprintf(&b, "%-16s %12s %10.4g %12s %7.1f%% %8.3g\n", v.Name, amount(v.Arrivals), v.PerCall,
				amount(v.Served), 100*v.Wasted/max(v.Served, 1), v.MaxQueue)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) sparklines(b *strings.Builder, width int) {
	s := &r.Series
	total := make([]float64, len(s.Fresh))
	for i := range total {
		total[i] = s.Fresh[i] + s.Retry[i]
	}
	if r.Trigger != nil {
		n := len(total)
		mark := []byte(strings.Repeat(" ", min(width, n)))
		for i := range mark {
			at := time.Duration((float64(i) + 0.5) / float64(len(mark)) * float64(r.Duration))
			if at >= r.Trigger[0].D() && at < r.Trigger[1].D() {
				mark[i] = '='
			}
		}
		fmt.Fprintf(b, "%-11s %s\n", "fault", strings.TrimRight(string(mark), " "))
	}
	load := peak(total)
	for _, row := range []struct {
		name   string
		values []float64
		top    float64
		unit   string
	}{
		{"attempts", total, load, "/s"},
		{"retries", s.Retry, load, "/s"},
		{"good", s.Good, peak(s.Offered), "/s"},
		{"multiplier", s.Multiplier, peak(s.Multiplier), "x"},
		{"p99", plain(s.P99), peak(plain(s.P99)), " ms"},
		{"queue", s.Queue, peak(s.Queue), " s"},
		{"budget", s.Budget, 1, ""},
		{"breaker", s.Breaker, 1, ""},
	} {
		if row.name == "breaker" && peak(row.values) == 0 {
			continue
		}
		fmt.Fprintf(b, "%-11s %s %s%s\n", row.name, sparkline(row.values, width, row.top), amount(peak(row.values)), row.unit)
	}
}

// WriteComparison writes results side by side.
func WriteComparison(w io.Writer, all []Compared) error {
	var b strings.Builder
	if len(all) > 0 {
		r := all[0].Result
		fmt.Fprintf(&b, "%s: %v simulated, seed %d\n\n", r.Scenario, r.Duration, r.Seed)
	}
	fmt.Fprintf(&b, "%-22s %-14s %9s %7s %6s %9s %8s %9s %7s\n",
		"", "verdict", "recovery", "load x", "peak", "good", "wasted", "p99 ms", "queue s")
	for _, c := range all {
		s := &c.Result.Summary
		recovery := "never"
		if s.Recovery >= 0 {
			recovery = fmt.Sprintf("%.1f s", s.Recovery)
		}
		fmt.Fprintf(&b, "%-22s %-14s %9s %7.3f %6.2f %8.2f%% %7.1f%% %9.4g %7.3g\n", c.Variant.Title, s.Verdict, recovery,
			s.Multiplier, s.PeakMultiplier, 100*s.Good/max(s.Calls, 1), 100*s.Wasted, s.P99, s.MaxQueue)
	}
	b.WriteString("\nattempts a second (same scale), then good calls\n")
	top, good := 0.0, 0.0
	for _, c := range all {
		for i := range c.Result.Series.Fresh {
			top = max(top, c.Result.Series.Fresh[i]+c.Result.Series.Retry[i])
			good = max(good, c.Result.Series.Offered[i])
		}
	}
	for _, c := range all {
		s := &c.Result.Series
		total := make([]float64, len(s.Fresh))
		for i := range total {
			total[i] = s.Fresh[i] + s.Retry[i]
		}
		fmt.Fprintf(&b, "%-22s %s\n%-22s %s\n", c.Variant.Title, sparkline(total, 72, top), "", sparkline(s.Good, 72, good))
	}
	for _, n := range notes(all) {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// notes returns the notes of all results, each once.
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

// WriteText writes the map for a terminal: one row for each load.
func (s *Sweep) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: what stays, by load and length of the first fault (%s engine)\n", s.Scenario, s.Engine)
	b.WriteString("seconds until it is back: . at once, 1-9 tens of percent of a minute, X never, O overloaded anyway, S self-inflicted, ? undecided\n\n")
	for i := len(s.Loads) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%5.2fx ", s.Loads[i])
		for _, c := range s.Cells[i] {
			b.WriteByte(' ')
			b.WriteByte(c.letter())
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%6s  %v to %v\n", "", s.Triggers[0], s.Triggers[len(s.Triggers)-1])
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Cell) letter() byte {
	switch {
	case c.Verdict == Metastable:
		return 'X'
	case c.Verdict == Overloaded:
		return 'O'
	case c.Verdict == SelfInflicted:
		return 'S'
	case c.Verdict == Undecided:
		return '?'
	case c.Recovery < 1:
		return '.'
	}
	return byte('0' + min(9, 1+int(c.Recovery/6)))
}
