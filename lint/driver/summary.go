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

// summary writes how many findings each rule has, by confidence, and then the totals:
// how many of them fail, because most runs show warnings too, how many can be fixed,
// and what was left out. A run that shows nothing new is none that found nothing.
func summary(w io.Writer, rep *report.Report, d *details) error {
	judged, fixes, known, left := d.Packages-len(d.NotJudged), 0, 0, ""
	counting := rep.Counting()
	byRule := map[string]map[string]int{}
	for _, f := range counting {
		if byRule[f.ID] == nil {
			byRule[f.ID] = map[string]int{}
		}
		byRule[f.ID][f.Confidence]++
		if len(f.Fixes) > 0 {
			fixes++
		}
	}
	for _, f := range rep.Findings {
		if f.Baseline == "unchanged" {
			known++
		}
	}
	if known > 0 {
		left = fmt.Sprintf("; %d in the baseline", known)
	}
	if n := len(d.NotJudged); n > 0 {
		left += "; " + report.Plural(n, "package") + " not judged"
	} else if rep.Incomplete() {
		left += "; some packages could not be judged"
	}
	if fixes > 0 {
		left += fmt.Sprintf("; --fix can fix %d", fixes)
	}
	packages := report.Plural(judged, "package")
	if d.Since != "" {
		packages = "files of " + packages + " that differ from " + d.Since
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	switch {
	case len(counting) > 0:
		fmt.Fprintln(table)
		for _, id := range slices.Sorted(maps.Keys(byRule)) {
			fmt.Fprintln(table, ofRule(id, byRule[id]))
		}
		verb := map[bool]string{true: "fails", false: "fail"}[d.Failing == 1]
		fmt.Fprintf(table, "%s, %s, %d of them %s%s\n", packages, report.Plural(len(counting), "finding"), d.Failing, verb, left)
	case judged == 0:
		fmt.Fprintln(table, "no package was judged")
	default:
		fmt.Fprintf(table, "no findings in %s%s\n", packages, left)
	}
	return table.Flush()
}

// ofRule is the row of a rule.
func ofRule(id string, byConfidence map[string]int) string {
	var counts []string
	for c := rule.High; c >= rule.Low; c-- {
		if n := byConfidence[c.String()]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, c))
		}
	}
	d, _ := lint.Explain(id)
	return fmt.Sprintf("%s %s\t%s", id, d.Name, strings.Join(counts, ", "))
}
