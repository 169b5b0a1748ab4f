package driver

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// summary writes how many findings each rule has, by confidence, and then the
// totals. Without findings it is one line.
// The totals say how many of the findings fail, because most runs show warnings
// too, how many can be mended by the linter itself, and what was left out: a run
// that shows nothing new is none that found nothing.
func summary(w io.Writer, rep *report.Report, d *details) error {
	missing, judged := "", d.Packages-len(d.NotJudged)
	switch n := len(d.NotJudged); {
	case n > 0:
		missing = fmt.Sprintf("; %s not judged", plural(n, "package"))
	case rep.Incomplete():
		missing = "; there are faults"
	}
	counting, known := rep.Counting(), 0
	for _, f := range rep.Findings {
		if f.Baseline == "unchanged" {
			known++
		}
	}
	if known > 0 {
		missing = fmt.Sprintf("; %d known to the baseline", known) + missing
	}
	packages := plural(judged, "package")
	if d.Since != "" {
		packages = "files of " + packages + " that differ from " + d.Since
	}
	if len(counting) == 0 {
		none := "no findings in " + packages
		if judged == 0 {
			none, missing = "no package was judged", ""
		}
		_, err := fmt.Fprintln(w, none+missing)
		return err
	}
	byRule := map[string]map[string]int{}
	for _, f := range counting {
		if byRule[f.ID] == nil {
			byRule[f.ID] = map[string]int{}
		}
		byRule[f.ID][f.Confidence]++
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	for _, id := range slices.Sorted(maps.Keys(byRule)) {
		var counts []string
		for c := rule.High; c >= rule.Low; c-- {
			if n := byRule[id][c.String()]; n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, c))
			}
		}
		name := ""
		if doc, ok := lint.Explain(id); ok {
			name = doc.Name
		}
		fmt.Fprintf(table, "%s %s\t%s\n", id, name, strings.Join(counts, ", "))
	}
	mends := 0
	for _, f := range counting {
		if len(f.Fixes) > 0 {
			mends++
		}
	}
	if mends > 0 {
		missing += fmt.Sprintf("; for %d there is a fix (--fix)", mends)
	}
	verb := map[bool]string{true: "fails", false: "fail"}[d.Failing == 1]
	fmt.Fprintf(table, "%s, %s, %d of them %s%s\n", packages, plural(len(counting), "finding"), d.Failing, verb, missing)
	return table.Flush()
}
