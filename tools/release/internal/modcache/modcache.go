// Package modcache gives the go command the tagged modules of a repository as if they
// were published.
package modcache

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/module"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// A Cache is a module cache that has the modules of one version beside what it gets
// from the machine's. It is a folder of its own, since the go command keeps the first
// bytes that it sees of a version.
type Cache struct {
	dir  string
	Sums map[string]workspace.Sum // as the go command computed them
}

// Make has the go command fetch the modules into dir from the repository's tags, as it
// would from where the repository is published.
func Make(ctx context.Context, repository, dir string, modules []workspace.Module, version string) (*Cache, error) {
	c := &Cache{dir: dir, Sums: map[string]workspace.Sum{}}
	env := run.Env{
		"GOMODCACHE=" + dir, "GOPROXY=direct", "GOWORK=off", "GOFLAGS=-modcacherw",
		"GONOSUMDB=" + workspace.Prefix, "GOVCS=*:git", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + repository + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + workspace.Prefix,
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, module.Version{Path: m.Path, Version: version}.String())
	}
	out, err := run.Output(ctx, os.TempDir(), env, "go", args...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var m struct{ Path, Sum, GoModSum string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		c.Sums[m.Path] = workspace.Sum{Zip: m.Sum, GoMod: m.GoModSum}
	}
	return c, nil
}

// Env has the go command use the cache, with these flags. Other modules come from the
// machine's module cache, or from where they always come.
func (c *Cache) Env(ctx context.Context, flags ...string) (run.Env, error) {
	out, err := run.Output(ctx, os.TempDir(), nil, "go", "env", "GOPROXY", "GONOSUMDB", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	return run.Env{
		"GOWORK=off", "GOMODCACHE=" + c.dir,
		// Lists of versions are read from a proxy only, so that the cache is the first proxy.
		"GOPROXY=file://" + c.dir + "/cache/download,file://" + lines[2] + "/cache/download," + lines[0],
		"GONOSUMDB=" + strings.Trim(lines[1]+","+workspace.Prefix, ","),
		run.Flags(strings.Join(append(flags, "-modcacherw"), " ")), // or no one could remove it
	}, nil
}

// Same compares what go.sum files were given with what the go command computed.
func (c *Cache) Same(sums map[string]workspace.Sum) error {
	for path, got := range sums {
		if want := c.Sums[path]; got != want {
			return fmt.Errorf("%s: its tag has the sums %s, and go.sum says %s", path, want, got)
		}
	}
	return nil
}
