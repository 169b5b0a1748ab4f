// Package forrst is the command forrst: the migration of Forrst documents from the
// retryable field to the retry extension. What to change is package forrst's of
// the library; here are files, their modes and the exit codes.
package forrst

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/forrst"
)

// maxDocument bounds what is read of one document, in bytes. A longer file
// was hardly written by hand, and is more likely named by mistake.
const maxDocument = 16 << 20

// Command returns the command forrst. It has one verb today, and requires
// it, so that a second one can come without changing the first.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "forrst",
		Summary: "rewrite Forrst documents from the retryable field to the retry extension",
		Usage:   "migrate [--dry-run] [--diff] [-o text|json] FILE...",
		About: `
Migrate rewrites JSON documents and the JSON examples of Markdown documents: the
retryable field of errors goes, and the extension urn:forrst:ext:retry comes
into their responses, saying the same. Nothing else of a file changes, and a
second run changes nothing. A field of that name in a result, in arguments, in
details or in other business data is not the protocol's: it stays, and a note says
where it is.

Places that it does not rewrite are listed with file and line: errors without their
response, text and tables that speak of the field, and examples in PHP and other
languages. With -o json they have a kind: table, text, code, json, data.

Exit code 0 means that nothing is left to do; 1 that places are left for a
person, or, with --dry-run, that there is something to rewrite; 2 that a file
could not be read or written. Every file is looked at in any case.`,
		Examples: `
forbear forrst migrate --dry-run docs/errors.md
forbear forrst migrate docs/errors.md examples/rate-limited.json
forbear forrst migrate --dry-run -o json docs/*.md
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		m := migration{report: report{Files: []document{}}}
		format := f.String("o", "text", "output format: `text or json`")
		f.BoolVar(&m.dry, "dry-run", false, "write nothing; print the diff")
		f.BoolVar(&m.diff, "diff", false, "print the diff of what is written")
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case len(words) == 0:
			return std.Fail("forrst: want migrate FILE... (see forbear forrst --help)")
		case len(words) == 1:
			return std.Fail("forrst: no files (see forbear forrst --help)")
		case *format != "text" && *format != "json":
			return std.Fail("forrst: unknown format %q: want text or json", *format)
		}
		m.json = *format == "json"
		// The worst code of all files counts, and each file is looked at
		// in any case.
		for _, name := range words[1:] {
			code = max(code, m.file(std, name))
		}
		if m.json {
			if err := cli.WriteJSON(std.Out, m.report); err != nil {
				return std.Fail("forrst: %v", err)
			}
		}
		return code
	}
	return c
}

// migration is one run of forrst migrate. The zero value rewrites the files
// and prints no diff.
type migration struct {
	dry  bool // print the diff, write nothing
	diff bool // print the diff of what is written
	json bool // print the report at the end, and neither diffs nor places before
	report
}

// report is the output for programs: one document for each file that could be
// read, and the diff where one was asked for.
type report struct {
	Files []document `json:"files"`
}

type document struct {
	File    string         `json:"file"`
	Written bool           `json:"written"`
	Changes []forrst.Place `json:"changes"`
	Left    []forrst.Place `json:"left"` // what a person must look at
	Kept    []forrst.Place `json:"kept"` // business data, not touched
	Diff    string         `json:"diff,omitempty"`
}

// file rewrites one file and returns the exit code for it. What it could not
// rewrite goes to standard error as file:line, which editors can follow. A
// file without changes is not written, and keeps its modification time.
func (m *migration) file(std *cli.Streams, name string) int {
	text, mode, err := readDocument(name)
	if err != nil {
		return std.Fail("forrst: %v", err)
	}
	// Markdown is recognised by its name alone: a JSON document may hold a fence
	// too.
	markdown := slices.Contains([]string{".md", ".markdown", ".mdx"}, strings.ToLower(filepath.Ext(name)))
	done := forrst.Migrate(text, markdown)
	code := cli.ExitOK
	d := document{File: name, Changes: done.Changes, Left: done.Left, Kept: done.Kept}
	// A document without the old field is not touched, and reported as
	// nothing.
	if changed := !bytes.Equal(done.Text, text); changed {
		if m.dry || m.diff {
			d.Diff = done.Diff(name)
		}
		if m.dry {
			// With --dry-run something to rewrite is a finding: a
			// pipeline uses that as its check.
			code = cli.ExitFound
		} else if err := writeDocument(name, done.Text, mode); err != nil {
			return std.Fail("forrst: %v", err)
		} else {
			d.Written = true
		}
	}
	if len(done.Left) > 0 {
		code = cli.ExitFound
	}
	if m.json {
		m.Files = append(m.Files, d)
	} else {
		m.print(std, d)
	}
	return code
}

// print writes the diff to standard output and the places to standard error.
func (m *migration) print(std *cli.Streams, d document) {
	fmt.Fprint(std.Out, d.Diff)
	if len(d.Changes) > 0 {
		fmt.Fprintf(std.Err, "%s: %d changes%s\n", d.File, len(d.Changes), map[bool]string{true: " to make"}[m.dry])
	}
	for _, p := range d.Left {
		fmt.Fprintf(std.Err, "%s:%v\n", d.File, p)
	}
	for _, p := range d.Kept {
		fmt.Fprintf(std.Err, "%s:%d: note: %s\n", d.File, p.Line, p.What)
	}
}

// readDocument reads a regular file and its mode, which the new text keeps.
// A pipe or a device is refused: it could not be replaced.
func readDocument(name string) (text []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is no regular file", name)
	case info.Size() > maxDocument:
		return nil, 0, fmt.Errorf("%s is longer than %d bytes", name, maxDocument)
	}
	text, err = os.ReadFile(name)
	return text, info.Mode().Perm(), err
}

// writeDocument replaces a file in one step: a run that is cut off leaves
// the old text, never half of the new one. The temporary file is in the same
// folder, because a rename does not cross file systems.
func writeDocument(name string, text []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the link stays a link
	}
	// The leading dot keeps it out of globs such as docs/*.
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = cmp.Or(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	// The temporary file must not stay behind as litter.
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
