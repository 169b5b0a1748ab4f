// Package cut makes a release: one commit, a tag for each module, and the proof that
// they can be used.
//
// It works in a clone. The repository gets the commit and the tags when everything has
// passed, and is as it was when anything has not.
package cut

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/forbear-go/forbear/tools/release/internal/api"
	"github.com/forbear-go/forbear/tools/release/internal/changelog"
	"github.com/forbear-go/forbear/tools/release/internal/modcache"
	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// Options say how a release is made.
type Options struct {
	Rehearse bool // leave the repository as it is, whatever comes out
	Quick    bool // run no tests
	// For tests of this package, which have no time for everything twice:
	Believe   bool      // believe that nothing breaks users, and that vet finds nothing
	Unused    bool      // use no module in an empty one
	Forgetful bool      // keep no databases for later versions
	Log       io.Writer // what is being done
}

// Release releases all modules of the checkout at root as a version.
func Release(ctx context.Context, root, version string, o Options) (err error) {
	w, err := workspace.Read(root)
	if err != nil {
		return err
	}
	last, err := before(ctx, w, version)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "forbear-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nnothing was released: the repository is as it was", err)
		}
	}()
	c := &candidate{version: version, last: last, log: o.Log, root: root}
	if !o.Believe {
		if err := c.compare(ctx, w); err != nil {
			return err
		}
	}
	if err := c.clone(ctx, dir); err != nil {
		return err
	}
	if err := c.commit(ctx, o); err != nil {
		return err
	}
	modules, err := modcache.Make(ctx, c.w.Root, filepath.Join(dir, "modules"), c.w.Released(), version)
	if err != nil {
		return err
	}
	if err := c.check(ctx, modules, filepath.Join(dir, "users"), o); err != nil {
		return err
	}
	if err := c.writeNotes(); err != nil {
		return err
	}
	if o.Rehearse {
		c.say("rehearsed %s: nothing was changed here", version)
		return nil
	}
	return c.take(ctx)
}

// A candidate is a release in its clone.
type candidate struct {
	version, last string
	root          string               // of the repository that is to have it
	w             *workspace.Workspace // the clone's
	sums          map[string]workspace.Sum
	section       string      // of the changelog
	changes       api.Changes // since the last version
	head          string      // the commit
	log           io.Writer
}

func (c *candidate) say(format string, args ...any) { fmt.Fprintf(c.log, format+"\n", args...) }

func (c *candidate) clone(ctx context.Context, dir string) error {
	to := filepath.Join(dir, "clone")
	if _, err := run.Git(ctx, c.root, "clone", "--quiet", "--shared", "--branch", "main", ".", to); err != nil {
		return err
	}
	// The name of the committer, and of the key, may be set in the repository alone.
	for _, key := range []string{"user.name", "user.email", "user.signingKey", "gpg.format", "gpg.program", "commit.gpgSign", "tag.gpgSign"} {
		value, err := run.Git(ctx, c.root, "config", "--get", key)
		if err != nil {
			continue // it is said nowhere
		}
		if _, err := run.Git(ctx, to, "config", key, value); err != nil {
			return err
		}
	}
	var err error
	c.w, err = workspace.Read(to)
	return err
}

// commit writes the version everywhere, commits, and tags each module.
func (c *candidate) commit(ctx context.Context, o Options) error {
	out, err := run.Git(ctx, c.w.Root, "ls-files", "--", "go.mod", "**/go.mod")
	if err != nil {
		return err
	}
	var dirs []string
	for name := range strings.FieldsSeq(out) {
		if !strings.Contains(name, "testdata/") {
			dirs = append(dirs, filepath.Dir(name))
		}
	}
	if err := c.w.Require(c.version, dirs); err != nil {
		return err
	}
	if err := writeChart(c.w.Root, c.version); err != nil {
		return err
	}
	if err := c.writeChangelog(); err != nil {
		return err
	}
	if err := (api.Changes{}).Write(c.w.Root); err != nil { // there are none since this version
		return err
	}
	if !o.Forgetful {
		if err := c.keepDatabases(ctx); err != nil {
			return err
		}
	}
	if c.sums, err = writeSums(ctx, c.w); err != nil {
		return err
	}
	name := strings.TrimPrefix(c.version, "v")
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--no-verify", "--message", "release: forbear " + name}} {
		if _, err := run.Git(ctx, c.w.Root, args...); err != nil {
			return err
		}
	}
	if c.head, err = run.Git(ctx, c.w.Root, "rev-parse", "HEAD"); err != nil {
		return err
	}
	for _, tag := range c.tags() {
		if _, err := run.Git(ctx, c.w.Root, "tag", "--annotate", "--message", "forbear "+name, tag); err != nil {
			return err
		}
	}
	c.say("%s: %d modules tagged in a clone", c.version, len(c.tags()))
	return nil
}

func (c *candidate) tags() []string {
	var tags []string
	for _, m := range c.w.Released() {
		tags = append(tags, m.Tag(c.version))
	}
	return tags
}

func (c *candidate) writeChangelog() error {
	name := filepath.Join(c.w.Root, "CHANGELOG.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	after, section, err := changelog.Release(string(text), c.version, time.Now())
	if err != nil {
		return err
	}
	c.section = section
	return os.WriteFile(name, []byte(after), 0o644)
}

// take brings commit and tags into the repository: all of them or nothing.
func (c *candidate) take(ctx context.Context) error {
	if err := onMain(ctx, c.root); err != nil { // still: the checks take their time
		return err
	}
	fetch := []string{"fetch", "--quiet", "--atomic", "--no-tags", c.w.Root}
	for _, tag := range c.tags() {
		fetch = append(fetch, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	if _, err := run.Git(ctx, c.root, fetch...); err != nil {
		return err
	}
	if _, err := run.Git(ctx, c.root, "merge", "--quiet", "--ff-only", c.head); err != nil {
		_, undo := run.Git(context.WithoutCancel(ctx), c.root, append([]string{"tag", "--delete"}, c.tags()...)...)
		if undo != nil {
			return fmt.Errorf("%w\nand its tags are still here: %w", err, undo)
		}
		return err
	}
	c.say("released %s here, and pushed nothing. To publish it:\n\n    git push origin main\n    git push origin %s\n", c.version, strings.Join(c.tags(), " "))
	return nil
}
