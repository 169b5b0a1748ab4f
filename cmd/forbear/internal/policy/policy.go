// Package policy is the command policy: what people do with policy files besides
// checking them. It writes schemas, differences, canonical text, and what the
// approvers of a waiver sign.
package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
)

// Command returns the command policy.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "policy",
		Summary: "schema, differences, canonical form and waiver payloads of policy files",
		Usage:   "schema | diff OLD NEW | format FILE | payload FILE WAIVER",
		About: `
Schema prints the JSON Schema for editors. Diff says in words what a change
means; exit code 1 says that there is one. Format prints a file with its
profiles written out. Payload prints what the approvers of a waiver sign:

  forbear policy payload policy.yaml W-1 | ssh-keygen -Y sign -n forbear-waiver -f KEY

under the namespace forbear-waiver-iab for the architecture board.`,
		Examples: `
forbear policy schema > policy.schema.json
forbear policy diff old.yaml new.yaml
forbear policy format policy.yaml
forbear policy payload policy.yaml W-1
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output format of diff: `text or json`")
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		if *format != "text" && *format != "json" {
			return std.Fail("policy: unknown format %q: want text or json", *format)
		}
		switch {
		case len(words) == 1 && words[0] == "schema":
			_, _ = std.Out.Write(policyfile.Schema())
			return cli.ExitOK
		case len(words) == 3 && words[0] == "diff":
			return diff(std, words[1], words[2], *format)
		case len(words) == 2 && words[0] == "format":
			return writeFormatted(std, words[1])
		case len(words) == 3 && words[0] == "payload":
			return writePayload(std, words[1], words[2])
		}
		return std.Fail("policy: want schema, diff OLD NEW, format FILE or payload FILE WAIVER (see forbear policy --help)")
	}
	return c
}

// inspect reads a policy file whether or not it keeps to the standard: a diff may
// be about the change that mends it, and a waiver is signed before it counts. The
// faults of a file that cannot be read go to standard error.
func inspect(std *cli.Streams, path string) (*policyfile.File, bool) {
	data, err := policyfile.Read(path)
	var f *policyfile.File
	if err == nil {
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

// diff says what a change means. Exit code 1 says that there is one, as
// diff(1) has it.
func diff(std *cli.Streams, before, after, format string) int {
	old, ok := inspect(std, before)
	if !ok {
		return cli.ExitUsage
	}
	is, ok := inspect(std, after)
	if !ok {
		return cli.ExitUsage
	}
	changes := policyfile.Diff(old, is)
	if format == "json" {
		if changes == nil {
			changes = []policyfile.Change{} // [] and not null
		}
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

// writeFormatted writes a file with its profiles laid out, so that a reviewer sees
// the values that are in force.
func writeFormatted(std *cli.Streams, path string) int {
	f, err := policyfile.Load(path)
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

// writePayload writes the bytes that the approvers of a waiver sign. The values
// that it lifts are among them: a signature for 7 retries does not lift 9.
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
