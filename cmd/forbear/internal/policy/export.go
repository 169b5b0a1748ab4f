package policy

import (
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
	"github.com/forbear-go/forbear/policyfile/export"
)

// writeExport writes the policy of one dependency for other software. What that
// cannot hold goes to standard error, and above the configuration where its notation
// has comments.
//
// Any limit that a waiver lifts is written as it stands, and outlives the file: the waiver has
// to be valid, as for check.
func writeExport(std *cli.Streams, path, to, dependency, format, signers string) int {
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
	relied, faults, err := check.Relied(f, d, check.Options{AllowedSigners: signers})
	for _, fault := range faults {
		std.Fail("policy: %s:%d: %s: %s", fault.File, fault.Line, fault.Message, exportHint(&fault, signers))
	}
	if err != nil {
		return std.Fail("policy: %v", err)
	}
	if len(faults) > 0 {
		return cli.ExitUsage
	}
	notes := []string{}
	for _, w := range relied {
		notes = append(notes, fmt.Sprintf("Waiver %s lifts %s until %s: export again, without it, by then.", w.ID, w.Rule, check.LastDay(w)))
	}
	out, err := export.Write(to, d, notes...)
	if err != nil {
		return std.Fail("policy: %v", err)
	}
	if format == "json" {
		losses := out.Losses
		if losses == nil {
			losses = []export.Loss{}
		}
		_ = cli.WriteJSON(std.Out, map[string]any{
			"schema": "forbear/export/v1", "to": to, "dependency": d.Name, "config": string(out.Config), "losses": losses, "waivers": notes,
		})
		return cli.ExitOK
	}
	for _, note := range notes {
		fmt.Fprintln(std.Err, note)
	}
	for _, l := range out.Losses {
		fmt.Fprintln(std.Err, l)
	}
	_, _ = std.Out.Write(out.Config)
	return cli.ExitOK
}

// exportHint says what to do about a waiver that is not valid.
func exportHint(f *report.Finding, signers string) string {
	if signers == "" && (f.ID == "FC907" || f.ID == "FC905") {
		return "have it signed (forbear policy payload), and give --allowed-signers FILE"
	}
	return f.Hint
}
