package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/check"
)

// RulesCommand returns the command rules. It stands beside check because it
// lists what check can find.
//
// A document about the rules would go out of date; this command cannot.
func RulesCommand() *cli.Command {
	c := &cli.Command{
		Name:    "rules",
		Summary: "list what check can find",
		Usage:   "list [-o text|json] | explain ID",
		Examples: `
forbear rules list
forbear rules list -o json
forbear rules explain FC105
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output format: `text or json`")
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case len(words) == 2 && words[0] == "explain":
			return explainRule(std, words[1])
		case len(words) != 1 || words[0] != "list":
			return std.Fail("rules: want list or explain ID (see forbear rules --help)")
		}
		// The text has the severity beside the id, because that is what
		// --fail-on goes by.
		switch *format {
		case "json": // for tools that link a finding to its explanation
			_ = cli.WriteJSON(std.Out, map[string]any{"schema": "forbear/rules/v1", "rules": check.Rules()})
		case "text":
			for _, r := range check.Rules() {
				fmt.Fprintf(std.Out, "%-6s %-8s %-12s %s\n", r.ID, r.Severity, r.Standard, r.Summary)
			}
		default:
			return std.Fail("rules: unknown format %q: want text or json", *format)
		}
		return cli.ExitOK
	}
	return c
}

// explainRule writes what a finding means, why it matters and how to correct
// it. Case does not matter, and a slip gets the nearest id as a hint.
func explainRule(std *cli.Streams, id string) int {
	r, ok := check.RuleOf(strings.ToUpper(id))
	if !ok {
		// Ids are short, so that a slip is usually one character away from
		// the right one.
		var known []string
		for _, r := range check.Rules() {
			known = append(known, r.ID)
		}
		return std.Fail("unknown finding %q%s", id, nearest.Hint(strings.ToUpper(id), known, ": see forbear rules list"))
	}
	// Whether a waiver helps is what a team asks next.
	waivable := "no waiver lifts it"
	if r.Waivable {
		waivable = "a waiver of " + cmp.Or(r.Standard, "the rule that it names") + " lifts it"
	}
	title := r.ID + " " + r.Name
	if r.Standard != "" {
		title += " (" + r.Standard + ")"
	}
	fmt.Fprintf(std.Out, "%s: %s\n\n%s\n\nWhy: %s\nFix: %s\n%s.\n", title, r.Severity, r.Summary, r.Why, r.Fix, strings.ToUpper(waivable[:1])+waivable[1:])
	return cli.ExitOK
}
