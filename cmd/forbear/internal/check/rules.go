package check

import (
	"context"
	"fmt"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/explain"
	"github.com/forbear-go/forbear/policyfile/check"
)

// RulesCommand returns the command rules. It stands beside check because it
// lists what check can find.
//
// A document about the rules would go out of date; this command cannot.
func RulesCommand() *cli.Command {
	c := &cli.Command{
		Name:    "rules",
		Summary: "list the findings of check, or explain one",
		Usage:   "list [-o text|json] | explain ID [-o text|json]",
		Examples: `
forbear rules list
forbear rules list -o json
forbear rules explain FC105
forbear rules explain R-7
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output: `text or json`")
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case len(words) == 2 && words[0] == "explain":
			return explain.Word(std, "rules", words[1], *format)
		case len(words) != 1 || words[0] != "list":
			return std.Fail("rules: want list, or explain ID (see forbear rules --help)")
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
