package policy

import (
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/export"
)

// writeExport writes the policy of one dependency for other software. What that
// cannot hold goes to standard error, and above the configuration where its notation
// has comments.
func writeExport(std *cli.Streams, path, to, dependency, format string) int {
	if to == "" {
		return std.Fail("policy: export to what? give --to %s", strings.Join(export.Formats(), ", "))
	}
	f, err := policyfile.Preview(path)
	if err != nil {
		fmt.Fprintln(std.Err, err)
		return cli.ExitUsage
	}
	d, err := f.Choose(dependency)
	if err != nil {
		return std.Fail("policy: %v", err)
	}
	out, err := export.Write(to, d)
	if err != nil {
		return std.Fail("policy: %v", err)
	}
	if format == "json" {
		losses := out.Losses
		if losses == nil {
			losses = []export.Loss{}
		}
		_ = cli.WriteJSON(std.Out, map[string]any{
			"schema": "forbear/export/v1", "to": to, "dependency": d.Name, "config": string(out.Config), "losses": losses,
		})
		return cli.ExitOK
	}
	for _, l := range out.Losses {
		fmt.Fprintln(std.Err, l)
	}
	_, _ = std.Out.Write(out.Config)
	return cli.ExitOK
}
