package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/check"
)

// Word writes what a word means that forbear's messages have: a reason, a rule of the
// standard, or a finding of forbear check. Case does not matter, nor whether a reason is
// written with spaces, and a slip gets the nearest word as a hint. format is text or json.
// It returns the exit code; command is for its error.
func Word(std *cli.Streams, command, word, format string) int {
	text, value := lookUp(word)
	switch {
	case text == nil:
		return std.Fail("%s: %.64q is no reason, rule or finding%s", command, word, nearest.Hint(word, words(), ": see docs/reference/reasons.md, or forbear rules list"))
	case format == "json":
		_ = cli.WriteJSON(std.Out, value)
	default:
		text(std.Out)
	}
	return cli.ExitOK
}

// words are all that Word knows.
func words() (all []string) {
	for _, r := range Reasons() {
		all = append(all, r.Name)
	}
	for _, r := range rules {
		all = append(all, r.ID)
	}
	for _, r := range check.Rules() {
		all = append(all, r.ID)
	}
	return all
}

// lookUp returns what writes the meaning of a word as text, and the meaning itself.
func lookUp(word string) (text func(io.Writer), value any) {
	name := underscored(strings.TrimSpace(word))
	for _, r := range Reasons() {
		if r.Name == name || r.Error == name {
			return r.write, r
		}
	}
	id := strings.ToUpper(strings.TrimSpace(word))
	for _, r := range rules {
		if r.ID == id {
			r.fill()
			return r.write, r
		}
	}
	if r, ok := check.RuleOf(id); ok {
		return func(w io.Writer) { writeFinding(w, r) }, r
	}
	return nil, nil
}

// underscored makes of words what a reason is written like.
func underscored(words string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(words))
}

// write writes r for people.
func (r Reason) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n%s\n", titled(r.Name, r.Rule), r.Means)
	part := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "\n%s: %s\n", name, text)
		}
	}
	part("Figures", r.Figures)
	part("What changes it", r.Change)
	part("In the policy file", strings.Join(r.Settings, ", "))
	part("Counted in", r.Metric)
	fmt.Fprintf(w, "\n%s\n%s\n", r.Guide, r.Page)
}

// fill adds what goes by the rule.
func (r *rule) fill() {
	for _, x := range Reasons() {
		if x.Rule == r.ID {
			r.Reasons = append(r.Reasons, x.Name)
		}
	}
	for _, x := range check.Rules() {
		if x.Standard == r.ID {
			r.Findings = append(r.Findings, x.ID)
		}
	}
	r.Page = Docs + "rules.md"
}

// write writes r for people.
func (r rule) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n%s\n", r.ID, r.Means)
	if len(r.Reasons) > 0 {
		fmt.Fprintf(w, "\nReasons: %s\n", strings.Join(r.Reasons, ", "))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintf(w, "\nFindings of forbear check: %s\n", strings.Join(r.Findings, ", "))
	}
	fmt.Fprintf(w, "\n%s\n", r.Page)
}

// writeFinding writes what a finding means, why it matters and how to correct it.
func writeFinding(w io.Writer, r report.Rule) {
	// Whether a waiver helps is what a team asks next.
	waivable := "No waiver lifts it"
	if r.Waivable {
		waivable = "A waiver of " + cmp.Or(r.Standard, "the rule that it names") + " lifts it"
	}
	fmt.Fprintf(w, "%s: %s\n\n%s\n\nWhy: %s\nFix: %s\n%s.\n", titled(r.ID+" "+r.Name, r.Standard), r.Severity, r.Summary, r.Why, r.Fix, waivable)
}

// titled is a name with its rule, where there is one.
func titled(name, rule string) string {
	if rule == "" {
		return name
	}
	return name + " (" + rule + ")"
}
