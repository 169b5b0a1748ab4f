package lint

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite RULES.md")

// TestRulesDocument holds RULES.md to the documentation values of the rules.
func TestRulesDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The rules of forbear lint\n\nGenerated from the analyzers. `forbear lint --explain FB1001` prints the same text.\n\n| rule | what is reported | of the standard |\n|---|---|---|\n")
	for _, d := range Rules() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", d.ID, strings.ToLower(d.ID), d.Title, d.Standard)
	}
	for _, d := range Rules() {
		fmt.Fprintf(&b, "\n## %s\n\n**%s**: %s (%s)\n\nFix: %s.\n\n%s\n", d.ID, d.Name, d.Title, d.Standard, d.Remedy, d.Text)
		if d.Bad != "" {
			fmt.Fprintf(&b, "\nReported:\n\n```go\n%s\n```\n\nInstead:\n\n```go\n%s\n```\n", d.Bad, d.Good)
		}
	}
	if *update {
		if err := os.WriteFile("RULES.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("RULES.md is out of date: run go test -run RulesDocument -update .")
	}
}

// TestRules: identifiers are unique, documented, and those of the messages.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Rules() {
		if seen[d.ID] || d.Name == "" || d.Title == "" || d.Text == "" || d.Standard == "" {
			t.Errorf("rule %q is a duplicate or lacks documentation", d.ID)
		}
		// The text output has it on a line of its own, with the address of the rule behind it.
		if n := len(d.Remedy); n == 0 || n > 90 || strings.ContainsAny(d.Remedy, "\n") || strings.HasSuffix(d.Remedy, ".") {
			t.Errorf("rule %s: the remedy %q is no line of at most 90 characters without a full stop", d.ID, d.Remedy)
		}
		seen[d.ID] = true
	}
	for i, a := range Analyzers() {
		if a.Name != strings.ToLower(RuleOf(i)) {
			t.Errorf("analyzer %s does not bear its rule's name %s", a.Name, RuleOf(i))
		}
	}
}
