// Package version is the command version, and what other commands say of the
// binary: a report names the tool that made it.
package version

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Build is what the binary knows of its own making. Revision is empty in a binary
// that was built outside a checkout, as go install does. Its JSON is read by scripts
// that compare the binaries of a fleet: a field may be added, and none changes its
// meaning.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the checkout
	Time     string `json:"time,omitempty"`     // of the revision, in RFC 3339
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Command returns the command version. It opens no file and no connection, so it
// works where nothing else does: ask it first when a binary behaves oddly.
//
// An unknown format is a usage error and prints nothing, so that a script never
// parses the wrong form.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "version",
		Summary: "print the version of this program",
		Usage:   "[-o text|json]",
		Examples: `
forbear version
forbear version -o json
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output: `text or json`")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		b := Read()
		switch *format {
		case "json":
			_ = json.NewEncoder(std.Out).Encode(b)
		case "text":
			fmt.Fprintln(std.Out, b)
		default:
			return std.Fail("version: unknown format %q: want text or json", *format)
		}
		return cli.ExitOK
	}
	return c
}

// String is one line for people. A binary from a checkout names the commit, and says
// when it was built from more than that.
func (b Build) String() string {
	of := b.Go + ", " + b.Platform
	if b.Modified {
		of = "modified, " + of
	}
	if b.Revision != "" {
		of = "commit " + b.Revision[:min(12, len(b.Revision))] + ", " + of
	}
	return "forbear " + b.Version + " (" + of + ")"
}

// stamp is set at link time by builds of a tree that Go knows no version of: those of
// packages and archives, which are made without the repository, so that anyone can
// make them again.
var stamp string

// Read returns the build information that the Go tool has put into the binary. Where
// that has a version, no stamp disagrees with it. It never fails. A binary without
// either is of version "devel", the same as one from a checkout without tags, so that
// a report always names some version.
func Read() Build {
	b := Build{Version: cmp.Or(stamp, "devel"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
