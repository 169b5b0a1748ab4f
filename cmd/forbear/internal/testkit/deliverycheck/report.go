package deliverycheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Violation is one breach of a rule. Rule is the number in the package's comment.
type Violation struct {
	Rule int
	Text string // with all facts that are known
}

// Report is the outcome of a run.
type Report struct {
	// Offers counts them by channel and kind, and Results by channel and result.
	Offers, Results map[string]int
	Letters         map[string]int // by reason
	Arrivals        int            // failed attempts included
	Failed          int            // those that got 503
	Resends         int            // of what had been taken before
	Kills           int
	Ordered         int // messages whose order was judged
	Unjudged        int // those that may have come through either channel

	Violations []Violation
}

// newReport counts what a run was made of. A run without violations says something
// only when its figures show that there was enough to violate. It reads the evidence
// without judging any of it.
func newReport(ev *Evidence) *Report {
	r := &Report{Offers: map[string]int{}, Results: map[string]int{}, Letters: map[string]int{}, Arrivals: len(ev.Arrivals), Kills: len(ev.Kills)}
	for _, o := range ev.Offers {
		r.Offers[string(o.Channel)+" "+string(o.Kind)]++
		r.Results[string(o.Channel)+" "+string(o.Result)]++
		if o.Crossed {
			r.Offers["of the other channel's ids"]++
		}
		if o.Channel == HTTP && len(o.Endpoints) > 1 {
			r.Offers["http with several endpoints"]++
		}
		if o.Calls > 1 {
			r.Results["repeated calls"]++
		}
	}
	for i := range ev.Arrivals {
		if !ev.Arrivals[i].good() {
			r.Failed++
		}
	}
	for i := range ev.Letters {
		r.Letters[ev.Letters[i].Reason]++
	}
	return r
}

// add adds a breach of a rule.
func (r *Report) add(rule int, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{rule, fmt.Sprintf(format, args...)})
}

// Count returns how many violations of a rule there are.
func (r *Report) Count(rule int) (n int) {
	for _, v := range r.Violations {
		if v.Rule == rule {
			n++
		}
	}
	return n
}

// Summary returns the figures, as lines of text. Maps are sorted by key, so that the
// summaries of two runs can be compared line by line.
func (r *Report) Summary() string {
	var b strings.Builder
	table := func(name string, m map[string]int) {
		fmt.Fprintf(&b, "%-10s", name)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, " %s %d;", k, m[k])
		}
		b.WriteByte('\n')
	}
	table("offers", r.Offers)
	table("results", r.Results)
	table("arrivals", map[string]int{"all": r.Arrivals, "failed with 503": r.Failed, "re-sends": r.Resends})
	table("order", map[string]int{"judged": r.Ordered, "through either channel": r.Unjudged})
	table("letters", r.Letters)
	table("faults", map[string]int{"kills": r.Kills})
	rules := map[string]int{}
	for rule := 1; rule <= 8; rule++ {
		rules[fmt.Sprint("rule ", rule)] = r.Count(rule)
	}
	table("violations", rules)
	return b.String()
}

// First returns up to n violations, of each rule some: one fault of the product
// usually breaks a rule hundreds of times. Each rule gets a quarter of n, and one at
// least.
func (r *Report) First(n int) string {
	var b strings.Builder
	of := map[int]int{}
	for _, v := range r.Violations {
		if of[v.Rule]++; of[v.Rule] <= max(n/4, 1) && n > 0 {
			n--
			fmt.Fprintf(&b, "rule %d: %s\n", v.Rule, v.Text)
		}
	}
	return b.String()
}
