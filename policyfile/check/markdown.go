package check

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/report"
)

// Markdown writes who owns the retries of each dependency, the worst cases
// and the findings, for a pull request or a wiki page.
func Markdown(w io.Writer, sources []Source, r *Result) error {
	var b strings.Builder
	b.WriteString("## Who retries\n\n| Dependency | Retry owner | Other layers |\n|---|---|---|\n")
	for _, s := range sources {
		for _, d := range s.File.All() {
			// The file may say it in its own words; otherwise the rule
			// stands here.
			others := cmp.Or(d.OtherLayers, "Do not retry "+d.Name+" elsewhere")
			if d.Policy.Disabled {
				others = "No one retries " + d.Name
			} else if d.Policy.Kind.Durable() && d.OtherLayers == "" {
				others = "Hand over and return; do not retry " + d.Name + " elsewhere"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(d.Name), cell(cmp.Or(d.Policy.Owner, "**no one**")), cell(others))
		}
	}
	b.WriteString("\n## Worst case\n\n| Call | Attempts | Load, no budget | Load, with budget | Busy client | Longest |\n|---|--:|--:|--:|--:|--:|\n")
	for _, l := range r.Loads {
		fmt.Fprintf(&b, "| %s | %d | %sx | %sx | %sx | %v |\n", cell(strings.Join(l.Path, " → ")), l.Attempts,
			number(l.PathWithout), number(l.PathWith), number(l.PathBusy), l.Duration)
	}
	counting := (&report.Report{Findings: r.Findings}).Counting()
	fmt.Fprintf(&b, "\n## Findings: %d\n", len(counting))
	if len(counting) > 0 {
		b.WriteString("\n| Where | What | Rule |\n|---|---|---|\n")
	}
	for _, f := range counting {
		fmt.Fprintf(&b, "| `%s:%d` | **%s** %s | %s |\n", f.File, f.Line, f.Severity, cell(f.Message), strings.TrimSpace(f.ID+" "+f.Standard))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells escapes what would end a table's cell or begin a tag: names and
// messages come from the file under review.
var cells = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")

// cell makes a text safe in a table.
func cell(s string) string { return cells.Replace(s) }

// Table writes the worst case of each dependency for a terminal, and the
// worst path in a last line.
func Table(w io.Writer, r *Result) error {
	if len(r.Loads) == 0 {
		return nil
	}
	width := len("dependency")
	for _, l := range r.Loads {
		width = max(width, len(l.Service)+len(" -> ")+len(l.Dependency))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s  %8s  %18s  %18s  %12s  %s\n", width, "worst case", "attempts", "load, no budget", "load, with budget", "busy client", "longest call")
	var most *Load
	for i := range r.Loads {
		l := &r.Loads[i]
		fmt.Fprintf(&b, "%-*s  %8d  %17sx  %17sx  %11sx  %v\n", width, l.Service+" -> "+l.Dependency, l.Attempts,
			number(l.Without), number(l.With), number(l.Busy), l.Duration)
		// The first of equals, so that the line does not change between
		// runs.
		if most == nil || l.PathWith > most.PathWith {
			most = l
		}
	}
	fmt.Fprintf(&b, "whole graph: at worst %sx with budgets (%sx for busy clients, %sx without), along %s; longest synchronous call %v\n",
		number(most.PathWith), number(most.PathBusy), number(most.PathWithout), strings.Join(most.Path, " -> "), longest(r.Loads))
	_, err := io.WriteString(w, b.String())
	return err
}

// longest returns the longest call of a kind whose caller waits for it. It
// is a Stringer only for the sake of the one place that prints it.
func longest(loads []Load) fmt.Stringer {
	var l Load
	for _, x := range loads {
		if x.kind != forbear.Event && x.kind != forbear.Webhook {
			l.Duration = max(l.Duration, x.Duration)
		}
	}
	return l.Duration
}
