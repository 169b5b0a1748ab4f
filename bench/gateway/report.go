package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// report is what a run found, as it is written for machines.
type report struct {
	Go       string            `json:"go"`
	Machine  string            `json:"machine"`
	At       time.Time         `json:"at"`
	Quick    bool              `json:"quick,omitzero"`
	Apart    bool              `json:"apart,omitzero"`
	Versions map[string]string `json:"versions"`
	Rows     []result          `json:"rows,omitzero"`
	Costs    []cost            `json:"costs,omitzero"`
	Misses   []string          `json:"misses,omitzero"` // goals that forbear missed
}

// writeRow writes the lines of one row.
func writeRow(w io.Writer, r row, results []result) {
	fmt.Fprintf(w, "\n### %s: %s\n\n", r.name, r.title)
	if r.about != "" {
		fmt.Fprintf(w, "%s.\n\n", strings.ToUpper(r.about[:1])+r.about[1:])
	}
	fmt.Fprintln(w, "| | good calls/s | good % | sends a call | p50 ms | p99 ms | what callers saw |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|---|")
	lag := 0.0
	for _, x := range results {
		lag = max(lag, x.Lag)
		fmt.Fprintf(w, "| %s | %.0f | %.1f | %.2f | %.1f | %.1f | %s |\n",
			x.Label, x.GoodPerSecond, 100*x.GoodShare, x.SendsPerCall, x.P50, x.P99, x.saw())
	}
	if lag > 50 {
		fmt.Fprintf(w, "\nThe machine was too busy for this row: of the calls one in a hundred began %.0f ms late.\n", lag)
	}
}

// saw lists what callers saw, the most frequent first, and what else was counted.
func (x result) saw() string {
	kinds := slices.SortedFunc(maps.Keys(x.Seen), func(a, b string) int {
		return cmp.Or(x.Seen[b]-x.Seen[a], strings.Compare(a, b))
	})
	var words []string
	for _, k := range kinds {
		words = append(words, fmt.Sprintf("%s: %d", k, x.Seen[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(x.Extra)) {
		words = append(words, fmt.Sprintf("*%s: %.0f*", strings.ReplaceAll(k, "_", " "), x.Extra[k]))
	}
	return strings.Join(words, ", ")
}

// writeSummary writes all rows as one table.
func writeSummary(w io.Writer, rows []row, cs []*contender, results []result) {
	if len(rows) < 2 {
		return
	}
	fmt.Fprintf(w, "\n### All rows: good calls/s, good %%, sends a call; p99 ms\n\n|  |")
	for _, c := range cs {
		fmt.Fprintf(w, " %s |", c.label)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("--:|", len(cs)))
	for i, r := range rows {
		fmt.Fprintf(w, "| %s |", r.title)
		for _, x := range results[i*len(cs) : (i+1)*len(cs)] {
			fmt.Fprintf(w, " %.0f, %.1f %%, %.2f; %.0f |", x.GoodPerSecond, 100*x.GoodShare, x.SendsPerCall, x.P99)
		}
		fmt.Fprintln(w)
	}
}

// limit is what 20 % of all requests comes to, the weakest reading of R-7.
const limit = 1.25

// misses returns the goals that forbear misses in a row. Those of a full run are
// none of a quick one: it spends in seconds what the budget saved before.
// bare is what the proxy without retries made of the same row: it has all that a
// breaker might refuse, on however busy a machine.
func (r row) misses(x, bare result, quick bool) (all []string) {
	say := func(format string, args ...any) {
		all = append(all, r.name+": "+fmt.Sprintf(format, args...))
	}
	if !quick && x.SendsPerCall > limit {
		say("%.2f sends a call, want at most %v", x.SendsPerCall, limit)
	}
	if least := r.least * bare.GoodPerSecond; !quick && x.GoodPerSecond < least {
		say("%.0f good calls a second, want %.0f, which is %v of the bare proxy's", x.GoodPerSecond, least, r.least)
	}
	if n := x.Extra["duplicates"]; n > 0 {
		say("%.0f duplicates, want none", n)
	}
	return all
}
