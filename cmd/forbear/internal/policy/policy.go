// Package policy is the command policy: what people do with policy files besides
// checking them. It writes schemas, differences, canonical text, and what the
// approvers of a waiver sign.
package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
	"github.com/forbear-go/forbear/policyfile/export"
)

// Command returns the command policy. Its verbs write to standard
// output, so that a pipeline decides where the result goes.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "policy",
		Summary: "print the schema, compare, format and export policy files",
		Usage:   "schema | diff OLD NEW | format FILE | payload FILE WAIVER | export --to SOFTWARE FILE",
		About: `
Schema prints the JSON Schema for editors. Diff explains a change in words; exit
code 1 means that there is one. Format prints a file with its profiles expanded.
Payload prints what the approvers of a waiver sign:

  forbear policy payload policy.yaml W-1 | ssh-keygen -Y sign -n forbear-waiver -f KEY

Use the namespace forbear-waiver-iab for an approval with role: iab, the board that
grants exceptions. Export writes a dependency's policy as settings of other
software, and lists on standard error what that software cannot do. If the policy
needs a waiver, give --allowed-signers.`,
		Examples: `
forbear policy schema > policy.schema.json
forbear policy diff old.yaml new.yaml
forbear policy format policy.yaml
forbear policy payload policy.yaml W-1
forbear policy export --to istio --dependency payments policy.yaml
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output of diff and export: `text or json`")
		to := f.String("to", "", "export: `software` to write for: "+strings.Join(export.Formats(), ", "))
		dependency := f.String("dependency", "", "export: `name` of the dependency, if there are several")
		signers := f.String("allowed-signers", "", "export: `file` of those who may sign waivers (see ssh-keygen(1))")
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		// Checked for every verb, although only diff uses it: a flag that
		// is ignored misleads.
		if *format != "text" && *format != "json" {
			return std.Fail("policy: unknown format %q: want text or json", *format)
		}
		// Operands are counted together with the verb, so that a missing
		// file is a fault of usage.
		switch {
		case len(words) == 1 && words[0] == "schema":
			// A closed pipe is the reader's choice, as with head.
			_, _ = std.Out.Write(policyfile.Schema())
			return cli.ExitOK
		case len(words) == 3 && words[0] == "diff":
			return diff(std, words[1], words[2], *format)
		case len(words) == 2 && words[0] == "format":
			return writeFormatted(std, words[1])
		case len(words) == 3 && words[0] == "payload":
			return writePayload(std, words[1], words[2])
		case len(words) == 2 && words[0] == "export":
			return writeExport(std, words[1], *to, *dependency, *format, *signers)
		}
		return std.Fail("policy: want schema, diff OLD NEW, format FILE, payload FILE WAIVER or export --to SOFTWARE FILE (see forbear policy --help)")
	}
	return c
}

// inspect reads a policy file whether or not it keeps to the standard: a
// diff may be about the change that corrects it, and a waiver is signed
// before it counts. The faults of a file that cannot be read go to standard
// error, each with its line.
func inspect(std *cli.Streams, path string) (*policyfile.File, bool) {
	data, err := policyfile.Read(path)
	var f *policyfile.File
	if err == nil {
		// What leaves the standard is for check to report, and is no
		// concern here.
		f, _, err = policyfile.Inspect(path, data)
	}
	if err == nil {
		return f, true
	}
	if _, ok := errors.AsType[*policyfile.Error](err); ok {
		fmt.Fprintln(std.Err, err)
	} else {
		std.Fail("policy: %v", err)
	}
	return nil, false
}

// diff says what a change means: load and time first, then the fields. Exit
// code 1 says that there is a change, as in diff(1).
func diff(std *cli.Streams, before, after, format string) int {
	old, ok := inspect(std, before)
	if !ok {
		// Exit code 2, as in diff(1): nothing was compared.
		return cli.ExitUsage
	}
	is, ok := inspect(std, after)
	if !ok {
		return cli.ExitUsage
	}
	// An empty list means that nothing changed in effect: comments and
	// order do not count.
	changes := policyfile.Diff(old, is)
	if format == "json" {
		if changes == nil {
			changes = []policyfile.Change{} // [] and not null, which a script would trip over
		}
		// The schema's name changes when a field changes its meaning.
		_ = cli.WriteJSON(std.Out, map[string]any{"schema": "forbear/diff/v1", "changes": changes})
	} else {
		for _, c := range changes {
			fmt.Fprintln(std.Out, c.Text)
		}
	}
	if len(changes) > 0 {
		return cli.ExitFound
	}
	return cli.ExitOK
}

// writeFormatted writes a file with its profiles written out, so that a
// reviewer sees the values in force. Only a file without faults has those.
func writeFormatted(std *cli.Streams, path string) int {
	f, err := policyfile.Preview(path)
	if err != nil {
		fmt.Fprintln(std.Err, err)
		return cli.ExitUsage
	}
	data, err := policyfile.Marshal(f)
	if err != nil {
		return std.Fail("policy: %v", err)
	}
	_, _ = std.Out.Write(data)
	return cli.ExitOK
}

// writePayload writes the bytes that the approvers of a waiver sign. The
// values that it lifts are part of them: a signature for 7 retries does not
// cover 9. The bytes are the same on every machine, as the signature
// demands.
func writePayload(std *cli.Streams, path, id string) int {
	f, ok := inspect(std, path)
	if !ok {
		return cli.ExitUsage
	}
	for i := range f.Waivers {
		if f.Waivers[i].ID == id {
			_, _ = std.Out.Write(check.Payload(f, &f.Waivers[i]))
			return cli.ExitOK
		}
	}
	return std.Fail("policy: %s has no waiver %q", path, id)
}
