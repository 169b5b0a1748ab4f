package driver

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/forbear-go/forbear/lint"
)

// listRules prints the rules, as text or as JSON.
// JSON is for tools that render the documentation; its fields are those of
// lint.Doc.
func listRules(o *options, stdout, stderr io.Writer) int {
	if len(o.outputs) == 1 && o.outputs[0].format == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(lint.Rules()); err != nil {
			fmt.Fprintln(stderr, "forbear lint:", err)
			return ExitUnjudged
		}
		return ExitPass
	}
	for _, d := range lint.Rules() {
		fmt.Fprintf(stdout, "%s  %-19s  %s (%s)\n", d.ID, d.Name, d.Title, d.Standard)
	}
	return ExitPass
}
