package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// Markdown writes who owns the retries of each dependency, the worst cases
// and the findings, for a pull request or a wiki page.
func Markdown(w io.Writer, read *Reading, rep *report.Report, r *Result) error {
	var b strings.Builder
	if len(r.Loads) > 0 {
		worstCases(&b, read, r)
	}
	counting := rep.Counting()
	fmt.Fprintf(&b, "## Findings: %d\n", len(counting))
	if len(counting) > 0 {
		b.WriteString("\n| Where | What | Rule |\n|---|---|---|\n")
	}
	for _, f := range counting {
		lines := []string{cell(f.Message)}
		for _, p := range f.Related {
			if line := cell(p.Message); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		fmt.Fprintf(&b, "| %s | **%s** %s | %s |\n", code(fmt.Sprintf("%s:%d", f.File, f.Line)), f.Severity, strings.Join(lines, "<br>"), strings.TrimSpace(f.ID+" "+retryRule(f.Standard)))
	}
	if len(rep.Problems) > 0 {
		fmt.Fprintf(&b, "\n## Not judged: %d\n\n| Where | Why |\n|---|---|\n", len(rep.Problems))
	}
	for _, p := range rep.Problems {
		fmt.Fprintf(&b, "| %s | **%s** %s: %s |\n", code(p.Place().String()), p.Severity(), p.Kind.Title(), cell(p.Message))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// worstCases writes who retries each call, and what that comes to.
func worstCases(b *strings.Builder, read *Reading, r *Result) {
	b.WriteString("## Who retries\n\n| Dependency | Retry owner | Other layers |\n|---|---|---|\n")
	i := 0
	for _, s := range read.Sources {
		for _, d := range s.File.All() {
			owner := cmp.Or(d.Policy.Owner, "**no one**")
			if s.File.Format != "" {
				owner = s.File.Format + ", in " + s.File.Name
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", cell(d.Name), cell(owner), cell(others(d, &r.Loads[i])))
			i++
		}
	}
	b.WriteString("\n## Worst case\n\n| Call | Attempts | Load, no budget | Load, with budget | Busy client | Longest |\n|---|--:|--:|--:|--:|--:|\n")
	for _, l := range r.Loads {
		fmt.Fprintf(b, "| %s | %d | %sx | %sx | %sx | %s |\n", cell(l.path(l.Path, " → ")), l.Attempts,
			atLeast(l.AtLeast)+number(l.PathWithout), atLeast(l.AtLeast)+number(l.PathWith), number(l.PathBusy), l.duration())
	}
	b.WriteByte('\n')
}

// others says what the layers around the owner do: what was found, or what the file
// says in its own words, or else the rule.
func others(d *policyfile.Dependency, l *Load) string {
	switch {
	case len(l.Layers) > 0:
		return "**" + strings.Join(l.Layers, ", ") + " retries it too**"
	case d.Policy.Disabled:
		return "No one retries " + d.Name
	case d.OtherLayers != "":
		return d.OtherLayers
	case d.Policy.Kind.Durable():
		return "Hand over and return; do not retry " + d.Name + " elsewhere"
	}
	return "Do not retry " + d.Name + " elsewhere"
}

// cells escapes what would end a table's cell, or begin a tag, a link or code: names and
// messages come from the files under review.
var cells = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "[", `\[`, "`", "\\`")

// cell makes a text safe in a table.
func cell(s string) string { return cells.Replace(report.Line(s)) }

// codes escapes what would end a table's cell or the code in it.
var codes = strings.NewReplacer(`\`, "/", "|", `\|`, "`", "'")

// code is a place, as code in a table.
func code(s string) string { return "`" + codes.Replace(report.Line(s)) + "`" }

// tableRows is how many calls a table has, and tableWidth how wide it is: as a terminal.
const (
	tableRows  = 20
	tableWidth = 80
	leastName  = 20 // that is left of a call's name beside very large figures
)

// Table writes the worst case of each dependency for a terminal, and the worst path in a
// last line. Of many, those with the greatest load are shown.
func Table(w io.Writer, r *Result) error {
	if len(r.Loads) == 0 {
		return nil
	}
	const columns = "%8s %8s %8s %6s %9s  "
	var b strings.Builder
	fmt.Fprintf(&b, columns+"%s\n", "attempts", "load", "budgeted", "busy", "longest", "worst case of a call")
	for _, l := range heaviestLoads(r.Loads) {
		row := fmt.Sprintf(columns, fmt.Sprint(l.Attempts), atLeast(l.AtLeast)+number(l.Without)+"x", atLeast(l.AtLeast)+number(l.With)+"x", number(l.Busy)+"x", l.duration())
		b.WriteString(row + fitted(l.call(), max(tableWidth-len(row), leastName)) + "\n")
	}
	if n := len(r.Loads) - tableRows; n > 0 {
		fmt.Fprintf(&b, "and %s with no greater load: see -o json\n", plural(n, "call"))
	}
	b.WriteString(summary(r))
	_, err := io.WriteString(w, b.String())
	return err
}

// heaviestLoads returns those that a table shows, in their order.
func heaviestLoads(loads []Load) []Load {
	if len(loads) <= tableRows {
		return loads
	}
	weight := func(l *Load) float64 { return l.PathWithout }
	sorted := slices.Clone(loads)
	slices.SortStableFunc(sorted, func(a, b Load) int { return cmp.Compare(weight(&b), weight(&a)) })
	return sorted[:tableRows]
}

// fitted makes a call fit its column: it cuts folders off the front, then the file, and at
// last the end.
func fitted(call string, width int) string {
	long := func() bool { return utf8.RuneCountInString(call) > width }
	for long() {
		_, rest, found := strings.Cut(strings.TrimPrefix(call, "…/"), "/")
		if !found || !strings.Contains(rest, " -> ") {
			break
		}
		call = "…/" + rest
	}
	if place, name, found := strings.Cut(call, " -> "); found && long() {
		if i := strings.LastIndexByte(place, ':'); i >= 0 {
			call = "…" + place[i:] + " -> " + name
		}
	}
	if long() {
		call = string([]rune(call)[:width-1]) + "…"
	}
	return call
}

// summary is the last line of the table: the worst paths with budgets and without,
// which may be two.
func summary(r *Result) string {
	// The first of equals, so that the line does not change between runs.
	with, without, open := &r.Loads[0], &r.Loads[0], r.Incomplete
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.PathWith > with.PathWith {
			with = l
		}
		if l.PathWithout > without.PathWithout {
			without = l
		}
		open = open || l.AtLeast
	}
	sign, path, other := atLeast(open), with.path(with.Path, " -> "), without.path(without.pathWithout, " -> ")
	figures := fmt.Sprintf("%s%sx with budgets (%sx for busy clients, %s%sx without), along %s", sign, number(with.PathWith), number(with.PathBusy), sign, number(without.PathWithout), path)
	if other != path {
		figures = fmt.Sprintf("%s%sx with budgets (%sx for busy clients), along %s; %s%sx without, along %s", sign, number(with.PathWith), number(with.PathBusy), path, sign, number(without.PathWithout), other)
	}
	return fmt.Sprintf("whole graph: at worst %s; longest synchronous call %s\n", figures, longest(r.Loads))
}

// call is the service and what it calls.
func (l *Load) call() string { return l.path([]string{l.Service, l.Dependency}, " -> ") }

// path joins the names of a path. A file that names no service begins with the line of
// the call, since it may call one dependency from several places.
func (l *Load) path(names []string, arrow string) string {
	if len(names) > 0 && names[0] == l.File {
		names = append([]string{fmt.Sprintf("%s:%d", l.File, l.Line)}, names[1:]...)
	}
	return report.Line(strings.Join(names, arrow))
}

// longest returns the longest call of a kind whose caller waits for it.
func longest(loads []Load) string {
	var l Load
	waits := func(x Load) bool { return x.kind != forbear.Event && x.kind != forbear.Webhook }
	if !slices.ContainsFunc(loads, waits) {
		return "none"
	}
	for _, x := range loads {
		if waits(x) {
			l.Duration, l.longer = max(l.Duration, x.Duration), l.longer || x.longer
		}
	}
	return l.duration()
}

// retryRule is a rule of the standard on retries, or "": the number of a companion
// standard says nothing to most readers.
func retryRule(standard string) string {
	if strings.HasPrefix(standard, "INTG-") {
		return ""
	}
	return standard
}
