package cut

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/forbear-go/forbear/tools/release/internal/modcache"
	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// check uses the tags as others would: from empty modules, by go install, and in a
// checkout without the workspace. That takes long, and says of all modules what is wrong
// with them.
func (c *candidate) check(ctx context.Context, modules *modcache.Cache, dir string, o Options) error {
	if err := modules.Same(c.sums); err != nil {
		return err
	}
	if err := c.timed("the workspace, which goes on from here", func() error {
		return run.Quiet(ctx, c.w.Root, run.Env{"GOWORK="}, "go", "list", "-deps", "-test", "work")
	}); err != nil {
		return err
	}
	env, err := modules.Env(ctx)
	if err != nil {
		return err
	}
	if !o.Unused {
		if err := c.used(ctx, modules, dir, o.Believe); err != nil {
			return err
		}
	}
	var failed []error
	for _, m := range c.w.Modules {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.timed(m.Dir+": "+what(o.Quick)+" in a checkout, alone", func() error { return c.alone(ctx, env, m, o.Quick) }); err != nil {
			c.say("FAILED   %s", m.Dir)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// used tries what the README says: go get of each module, and go install.
func (c *candidate) used(ctx context.Context, modules *modcache.Cache, dir string, vetted bool) error {
	env, err := modules.Env(ctx, "-mod=mod")
	if err != nil {
		return err
	}
	for _, m := range c.w.Released() {
		if err := c.timed(m.Path+": used in an empty module", func() error { return c.use(ctx, env, filepath.Join(dir, m.Dir, "use"), m, vetted) }); err != nil {
			return err
		}
	}
	return c.timed("forbear: installed, and says its version", func() error { return c.install(ctx, env, dir) })
}

func what(quick bool) string {
	if quick {
		return "tidy"
	}
	return "tidy, vetted and tested"
}

// timed says what passed and how long it took.
func (c *candidate) timed(what string, f func() error) error {
	start := time.Now()
	if err := f(); err != nil {
		return err
	}
	c.say("%6.1f s  %s", time.Since(start).Seconds(), what)
	return nil
}

// use gets a module into an empty one, builds all its packages, and vets them.
func (c *candidate) use(ctx context.Context, env run.Env, dir string, m workspace.Module, vetted bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	commands := [][]string{
		{"mod", "init", "example.com/use"},
		{"get", m.Path + "@" + c.version},
		{"build", "-o", os.DevNull, m.Path + "/..."},
	}
	if !vetted {
		commands = append(commands, []string{"vet", m.Path + "/..."})
	}
	for _, args := range commands {
		if err := run.Quiet(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

// install installs the command by its path and version, and asks it for both.
func (c *candidate) install(ctx context.Context, env run.Env, dir string) error {
	path := workspace.Prefix + "/cmd/forbear"
	if err := run.Quiet(ctx, dir, append(env, "GOBIN="+dir), "go", "install", path+"@"+c.version); err != nil {
		return err
	}
	out, err := run.Output(ctx, dir, nil, filepath.Join(dir, "forbear"), "version", "-o", "json")
	if err != nil {
		return err
	}
	var said struct{ Version string }
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Version != c.version {
		return fmt.Errorf("forbear version says %q, want %s", said.Version, c.version)
	}
	return nil
}

// alone holds a module's go.mod and go.sum to the tags of the others, and runs its tests
// with them.
func (c *candidate) alone(ctx context.Context, env run.Env, m workspace.Module, quick bool) error {
	dir := filepath.Join(c.w.Root, m.Dir)
	if err := run.Quiet(ctx, dir, env, "go", "mod", "tidy", "-diff"); err != nil || quick {
		return err
	}
	if err := run.Quiet(ctx, dir, env, "go", "vet", "./..."); err != nil {
		return err
	}
	return run.Quiet(ctx, dir, env, "go", "test", "-timeout", "30m", "./...")
}
