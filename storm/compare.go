package storm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/forbear-go/forbear/storm/internal/parallel"
	"github.com/forbear-go/forbear/storm/internal/report"
)

// Variant is a way of retrying, to be laid over a scenario with [Scenario.With].
type Variant struct {
	Name  string `json:"name"`
	Title string `json:"title"`

	baseline Baseline
	breaker  bool
}

// Variants returns the ways that [Compare] sets side by side, from the worst
// habit to the standard. Each adds one thing to the one before it.
func Variants() []Variant {
	// Oblivious layers are what most stacks have: only the last variant knows of the
	// others.
	return []Variant{
		{"none", "no backoff", Baseline{Wait: "none", NoBudget: true, Oblivious: true}, false},
		{"backoff", "backoff, no jitter", Baseline{Wait: "exponential", NoBudget: true, Oblivious: true}, false},
		{"jitter", "+ full jitter", Baseline{NoBudget: true, Oblivious: true}, false},
		{"budget", "+ retry budget", Baseline{Oblivious: true}, false},
		{"breaker", "+ circuit breaker", Baseline{Oblivious: true}, true},
		{"one-layer", "+ one layer retries", Baseline{}, true},
	}
}

// With returns s with every client retrying as v says. What the clients say of
// counts, waits and budgets stays, and so does the leave to say more than the
// standard allows.
func (s Scenario) With(v Variant) Scenario {
	return s.withClients(func(c *Client, _ *int) {
		unchecked := c.Baseline.Unchecked
		c.Baseline, c.Breaker, c.NoBreaker = v.baseline, v.breaker, !v.breaker
		c.Baseline.Unchecked = unchecked
	})
}

// withClients returns s, with its defaults, and f applied to every client and the number
// of its instances.
func (s Scenario) withClients(f func(c *Client, instances *int)) Scenario {
	s = s.WithDefaults()
	for i := range s.Fleets {
		f(&s.Fleets[i].Client, &s.Fleets[i].Instances)
	}
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			f(&s.Services[i].Calls[j].Client, &s.Services[i].Calls[j].Instances)
		}
	}
	return s
}

// Compared is one variant's result.
type Compared struct {
	Variant Variant `json:"variant"`
	Result  *Result `json:"result"`
}

// Compare runs s once for each of the variants, with the same seed. Without
// variants it takes all that apply: in a scenario of one layer, one-layer says
// nothing new and is left out. progress may be nil.
func Compare(ctx context.Context, s Scenario, o Options, progress func(done, of int), variants ...Variant) ([]Compared, error) {
	if len(variants) == 0 {
		variants = Variants()
		if !slices.ContainsFunc(s.Services, func(v Service) bool { return len(v.Calls) > 0 }) {
			variants = variants[:len(variants)-1]
		}
	}
	return parallel.Map(ctx, len(variants), progress, func(i int) (Compared, error) {
		r, err := Run(ctx, s.With(variants[i]), o)
		return Compared{variants[i], r}, err
	})
}

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
		fmt.Fprintf(b, "%-22s %-14s %9s %7.3f %6.2f %8.2f%% %7.1f%% %9.4g %7.3g\n", c.Variant.Title, s.Verdict, recovery,
			s.Multiplier, s.PeakMultiplier, 100*s.Good/max(s.Calls, 1), 100*s.Wasted, s.P99, s.MaxQueue)
	}
	// One scale for all attempts, and one for all goodput.
	b.WriteString("\nattempts a second (same scale), then good calls\n")
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
				report.Amount(s.P50) + " ms", report.Amount(s.P99) + " ms", report.Amount(s.MaxQueue) + " s",
			},
		})
	}
	return page.WriteHTML(w)
}
