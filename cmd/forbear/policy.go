package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
)

func policyCommand() *command {
	c := &command{
		name:    "policy",
		summary: "schema, differences, canonical form and waiver payloads of policy files",
		usage:   "schema | diff OLD NEW | format FILE | payload FILE WAIVER",
		about: `
Schema prints the JSON Schema for editors. Diff says in words what a change
means; exit code 1 says that there is one. Format prints a file with its
profiles written out. Payload prints what the approvers of a waiver sign:

  forbear policy payload policy.yaml W-1 | ssh-keygen -Y sign -n forbear-waiver -f KEY

under the namespace forbear-waiver-iab for the architecture board.`,
		examples: `
forbear policy schema > policy.schema.json
forbear policy diff old.yaml new.yaml
forbear policy format policy.yaml
forbear policy payload policy.yaml W-1
`,
	}
	c.run = func(_ context.Context, std *streams, args []string) int {
		f := c.flags()
		format := f.String("o", "text", "output format of diff: `text or json`")
		words, code, done := c.operands(std, f, args)
		if done {
			return code
		}
		if *format != "text" && *format != "json" {
			return std.fail("policy: unknown format %q: want text or json", *format)
		}
		switch {
		case len(words) == 1 && words[0] == "schema":
			_, _ = std.out.Write(policyfile.Schema())
			return exitOK
		case len(words) == 3 && words[0] == "diff":
			return policyDiff(std, words[1], words[2], *format)
		case len(words) == 2 && words[0] == "format":
			return policyFormat(std, words[1])
		case len(words) == 3 && words[0] == "payload":
			return policyPayload(std, words[1], words[2])
		}
		return std.fail("policy: want schema, diff OLD NEW, format FILE or payload FILE WAIVER (see forbear policy --help)")
	}
	return c
}

// inspect reads a policy file whether or not it keeps to the standard. A file
// that cannot be read is told of on standard error.
func (s *streams) inspect(path string) (*policyfile.File, bool) {
	data, err := policyfile.Read(path)
	var f *policyfile.File
	if err == nil {
		f, _, err = policyfile.Inspect(path, data)
	}
	if err == nil {
		return f, true
	}
	if _, ok := errors.AsType[*policyfile.Error](err); ok {
		fmt.Fprintln(s.err, err)
	} else {
		s.fail("policy: %v", err)
	}
	return nil, false
}

func policyDiff(std *streams, before, after, format string) int {
	old, ok := std.inspect(before)
	if !ok {
		return exitUsage
	}
	is, ok := std.inspect(after)
	if !ok {
		return exitUsage
	}
	changes := policyfile.Diff(old, is)
	if format == "json" {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		if changes == nil {
			changes = []policyfile.Change{}
		}
		_ = enc.Encode(map[string]any{"schema": "forbear/diff/v1", "changes": changes})
	} else {
		for _, c := range changes {
			fmt.Fprintln(std.out, c.Text)
		}
	}
	if len(changes) > 0 {
		return exitFound
	}
	return exitOK
}

func policyFormat(std *streams, path string) int {
	f, err := policyfile.Load(path)
	if err != nil {
		fmt.Fprintln(std.err, err)
		return exitUsage
	}
	data, err := policyfile.Marshal(f)
	if err != nil {
		return std.fail("policy: %v", err)
	}
	_, _ = std.out.Write(data)
	return exitOK
}

func policyPayload(std *streams, path, id string) int {
	f, ok := std.inspect(path)
	if !ok {
		return exitUsage
	}
	for i := range f.Waivers {
		if f.Waivers[i].ID == id {
			_, _ = std.out.Write(check.Payload(f, &f.Waivers[i]))
			return exitOK
		}
	}
	return std.fail("policy: %s has no waiver %q", path, id)
}

// create writes a new file, and refuses to replace one unless it may.
func create(name string, data []byte, replace bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
