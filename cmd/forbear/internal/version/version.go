package version

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// build is what the binary knows of its own making.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func Command() *cli.Command {
	c := &cli.Command{
		Name:    "version",
		Summary: "tell which forbear this is",
		Usage:   "[-o text|json]",
		Examples: `
forbear version
forbear version -o json
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output format: `text or json`")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		b := Read()
		switch *format {
		case "json":
			_ = json.NewEncoder(std.Out).Encode(b)
		case "text":
			fmt.Fprintf(std.Out, "forbear %s (%s, %s)\n", b.Version, b.Go, b.Platform)
		default:
			return std.Fail("version: unknown format %q: want text or json", *format)
		}
		return cli.ExitOK
	}
	return c
}

func Read() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
