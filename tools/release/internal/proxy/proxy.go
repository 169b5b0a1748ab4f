// Package proxy gives the go command the tagged modules of a repository as if they were
// published, and takes back what it has kept of them.
package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// A Proxy is a folder that the go command reads modules from. Those who are done with it
// close it.
type Proxy struct {
	Dir   string
	Sums  map[string]workspace.Sum // as the go command computed them
	kept  []module.Version
	cache string   // the machine's module cache
	lock  *os.File // for this version, since another may put other bytes under it
}

// Make has the go command fetch the modules from the repository's tags, as it would
// from where the repository is published. Its module cache, in dir, is the proxy. It
// waits for whoever has made one of the same version on this machine.
func Make(ctx context.Context, repository, dir string, modules []workspace.Module, version string) (*Proxy, error) {
	p := &Proxy{Dir: filepath.Join(dir, "cache", "download"), Sums: map[string]workspace.Sum{}}
	cache, err := run.Output(ctx, os.TempDir(), nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	p.cache = strings.TrimSpace(cache)
	for _, m := range modules {
		p.kept = append(p.kept, module.Version{Path: m.Path, Version: version})
	}
	if err := os.MkdirAll(p.cache, 0o755); err != nil {
		return nil, err
	}
	if p.lock, err = lock(ctx, filepath.Join(p.cache, "forbear-"+version+".lock")); err != nil {
		return nil, err
	}
	err = p.forget() // of one that was killed
	if err == nil {
		err = p.fetch(ctx, repository, dir)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// fetch fetches the modules into dir, and their sums.
func (p *Proxy) fetch(ctx context.Context, repository, dir string) error {
	env := run.Env{
		"GOMODCACHE=" + dir, "GOPROXY=direct", "GOWORK=off", "GOFLAGS=-modcacherw",
		"GONOSUMDB=" + workspace.Prefix, "GOVCS=*:git", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + repository + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + workspace.Prefix,
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range p.kept {
		args = append(args, m.String())
	}
	out, err := run.Output(ctx, os.TempDir(), env, "go", args...)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var m struct{ Path, Version, Sum, GoModSum string }
		if err := d.Decode(&m); err != nil {
			return err
		}
		p.Sums[m.Path] = workspace.Sum{Zip: m.Sum, GoMod: m.GoModSum}
	}
	return nil
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

// Close removes the modules from the machine's module cache, where the go command keeps
// the first bytes that it sees of a version.
func (p *Proxy) Close() error {
	return errors.Join(p.forget(), p.lock.Close())
}

func (p *Proxy) forget() error {
	for _, m := range p.kept {
		if err := forget(p.cache, m); err != nil {
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
