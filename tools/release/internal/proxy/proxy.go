// Package proxy gives the go command the tagged modules of a repository as if they were
// published, and takes back what it has kept of them.
package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// A Proxy is a folder that the go command reads modules from.
type Proxy struct {
	Dir  string
	Sums map[string]workspace.Sum // as the go command computed them
	kept []module.Version
}

// Make has the go command fetch the modules from the repository's tags, as it would
// from where the repository is published. Its module cache, in dir, is the proxy.
func Make(ctx context.Context, repository, dir string, modules []workspace.Module, version string) (*Proxy, error) {
	env := run.Env{
		"GOMODCACHE=" + dir, "GOPROXY=direct", "GOWORK=off", "GOFLAGS=-modcacherw",
		"GONOSUMDB=" + workspace.Prefix, "GOVCS=*:git", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + repository + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + workspace.Prefix,
	}
	p := &Proxy{Dir: filepath.Join(dir, "cache", "download"), Sums: map[string]workspace.Sum{}}
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.Path+"@"+version)
		p.kept = append(p.kept, module.Version{Path: m.Path, Version: version})
	}
	out, err := run.Output(ctx, os.TempDir(), env, "go", args...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var m struct{ Path, Version, Sum, GoModSum string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		p.Sums[m.Path] = workspace.Sum{Zip: m.Sum, GoMod: m.GoModSum}
	}
	return p, nil
}

// Env has the go command ask the proxy first, and the environment's for what it has
// not. The machine's own module cache serves, so that other modules are fetched and
// compiled once.
func (p *Proxy) Env(ctx context.Context) (run.Env, error) {
	out, err := run.Output(ctx, os.TempDir(), nil, "go", "env", "GOPROXY", "GONOSUMDB")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	env := run.Env{
		"GOWORK=off",
		"GOPROXY=file://" + p.Dir + "," + lines[0],
		"GONOSUMDB=" + strings.Trim(lines[1]+","+workspace.Prefix, ","),
		// The build cache has an index of each module in the module cache, by its folder:
		// of the imports that a rehearsal of the same version had, if one was written.
		"GODEBUG=" + strings.Trim(os.Getenv("GODEBUG")+",goindex=0", ","),
	}
	return env, nil
}

// Forget removes the modules from the machine's module cache, where the go command
// keeps the first bytes that it sees of a version.
func (p *Proxy) Forget(ctx context.Context) error {
	out, err := run.Output(ctx, os.TempDir(), nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	for _, m := range p.kept {
		if err := forget(strings.TrimSpace(out), m); err != nil {
			return err
		}
	}
	return nil
}

// Same compares what go.sum files were given with what the go command computed.
func (p *Proxy) Same(sums map[string]workspace.Sum) error {
	for path, got := range sums {
		if want := p.Sums[path]; got != want {
			return fmt.Errorf("%s: its tag has the sums %s, and go.sum says %s", path, want, got)
		}
	}
	return nil
}
