package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// build is what the binary knows of its own making.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand() *command {
	c := &command{
		name:    "version",
		summary: "tell which forbear this is",
		usage:   "[-o text|json]",
		examples: `
forbear version
forbear version -o json
`,
	}
	c.run = func(_ context.Context, std *streams, args []string) int {
		f := c.flags()
		format := f.String("o", "text", "output format: `text or json`")
		if code, done := c.parse(std, f, args, 0); done {
			return code
		}
		b := readBuild()
		switch *format {
		case "json":
			_ = json.NewEncoder(std.out).Encode(b)
		case "text":
			fmt.Fprintf(std.out, "forbear %s (%s, %s)\n", b.Version, b.Go, b.Platform)
		default:
			return std.fail("version: unknown format %q: want text or json", *format)
		}
		return exitOK
	}
	return c
}

func readBuild() build {
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
