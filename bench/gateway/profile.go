package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
)

// overlaid writes what `go build -overlay` needs to lay testdata/profile.go.txt over
// the program in src, and returns its path. The product itself has no profiler.
func overlaid(src, dir string) (string, error) {
	program, err := filepath.Abs(src)
	if err != nil {
		return "", err
	}
	extra, err := filepath.Abs(filepath.Join("gateway", "testdata", "profile.go.txt"))
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(program, "bench_profile.go"): extra,
	}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

// profiled begins or ends the profile of a contender that has one.
func (c *contender) profiled(p *running) error {
	if len(c.env) == 0 {
		return nil
	}
	return p.cmd.Process.Signal(syscall.SIGUSR1)
}
