package cut

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/forbear-go/forbear/tools/release/internal/api"
	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// compare holds what is exported to the records, which a review has seen, and them to
// those of the last version. What may break users waits for the next minor version,
// and from v1 on for another module path; what is experimental is only told.
func (c *candidate) compare(ctx context.Context, w *workspace.Workspace, believe bool) error {
	if !believe {
		changes, err := api.Changes(ctx, w)
		if err != nil {
			return err
		}
		if len(changes) > 0 {
			return fmt.Errorf("%swhat is exported is not what the folder api says: make api-update", changes[0])
		}
	}
	if c.last == "" {
		return nil
	}
	for _, m := range w.Released() {
		d, err := since(ctx, w.Root, c.last, api.Name(m))
		if err != nil {
			return err
		}
		c.broken = append(c.broken, prefixed(m, d.Gone)...)
		c.young = append(c.young, prefixed(m, d.Young)...)
	}
	if len(c.young) > 0 {
		c.say("warning: gone from experimental packages since %s:\n  %s", c.last, strings.Join(c.young, "\n  "))
	}
	if len(c.broken) == 0 {
		return nil
	}
	list := strings.Join(c.broken, "\n  ")
	if semver.Major(c.last) != "v0" || semver.MajorMinor(c.last) == semver.MajorMinor(c.version) {
		return fmt.Errorf("%s would break users of %s, and its number promises that it does not:\n  %s", c.version, c.last, list)
	}
	c.say("warning: may break users of %s, which the notes say:\n  %s", c.last, list)
	return nil
}

// since compares a record with what it was at a tag; one that was not there is empty.
func since(ctx context.Context, root, tag, name string) (api.Difference, error) {
	now, errNow := run.Output(ctx, root, nil, "git", "ls-tree", "--name-only", "HEAD", name)
	then, errThen := run.Output(ctx, root, nil, "git", "ls-tree", "--name-only", tag, name)
	if err := errors.Join(errNow, errThen); err != nil || then == "" {
		return api.Difference{}, err
	}
	before, err := run.Output(ctx, root, nil, "git", "show", tag+":"+name)
	if err != nil {
		return api.Difference{}, err
	}
	var after string
	if now != "" {
		if after, err = run.Output(ctx, root, nil, "git", "show", "HEAD:"+name); err != nil {
			return api.Difference{}, err
		}
	}
	return api.Compare(api.Parse(before), api.Parse(after)), nil
}

// prefixed writes lines of a record with the import paths of their packages.
func prefixed(m workspace.Module, lines []string) []string {
	var all []string
	for _, line := range lines {
		name, what, _ := strings.Cut(line, ": ")
		all = append(all, path.Join(m.Path, name)+": "+what)
	}
	return all
}
