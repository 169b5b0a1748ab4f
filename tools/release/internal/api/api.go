// Package api says what has become of what the released modules export since a version.
//
// golang.org/x/exp/apidiff judges each package, as it does for gorelease: it knows more
// of what breaks users than lines of text would, such as fields that come by embedding
// and methods of types that are not exported. It does not look at the unions of a
// constraint, which nothing here exports.
package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// Changes are lines that begin with the import path of a package.
type Changes struct {
	Breaking     []string // may break users
	Experimental []string // the same, in packages that had said so
	Other        []string
}

// Since compares a checkout with one of its earlier commits.
func Since(ctx context.Context, w *workspace.Workspace, ref string) (Changes, error) {
	commit, err := run.Git(ctx, w.Root, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err != nil {
		return Changes{}, fmt.Errorf("this clone has no commit %q to compare with: git fetch --tags, with --unshallow where it is shallow", ref)
	}
	// Always in the same folder, by which the build cache knows it; and not longer than
	// needed, since it has all files of the repository for a second time.
	dir := filepath.Join(w.Root, "bin", "api")
	if err := os.RemoveAll(dir); err != nil {
		return Changes{}, err
	}
	defer os.RemoveAll(dir)
	if _, err := run.Git(ctx, w.Root, "clone", "--quiet", "--shared", "--no-checkout", ".", dir); err != nil {
		return Changes{}, err
	}
	if _, err := run.Git(ctx, dir, "checkout", "--quiet", "--detach", commit); err != nil {
		return Changes{}, err
	}
	earlier, err := workspace.Read(dir)
	if err != nil {
		return Changes{}, err
	}
	before, err := load(ctx, earlier)
	if err != nil {
		return Changes{}, err
	}
	after, err := load(ctx, w)
	if err != nil {
		return Changes{}, err
	}
	return compare(before, after), nil
}

// compare compares packages by their import paths.
func compare(before, after map[string]pkg) Changes {
	var c Changes
	for _, path := range slices.Sorted(maps.Keys(before)) {
		was := before[path]
		breaking := &c.Breaking
		if was.experimental {
			breaking = &c.Experimental
		}
		is, ok := after[path]
		if !ok {
			*breaking = append(*breaking, path+": removed")
			continue
		}
		if is.experimental && !was.experimental {
			c.Breaking = append(c.Breaking, path+": experimental, and was not")
		}
		if was.experimental && !is.experimental {
			c.Other = append(c.Other, path+": experimental no longer")
		}
		for _, change := range apidiff.Changes(was.Package, is.Package).Changes {
			to := breaking
			if change.Compatible {
				to = &c.Other
			}
			*to = append(*to, path+": "+change.Message)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[path]; !ok {
			c.Other = append(c.Other, path+": added")
		}
	}
	return c
}

// String lists the changes, what breaks users first.
func (c Changes) String() string {
	var b strings.Builder
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"may break users", c.Breaking},
		{"changed in experimental packages", c.Experimental},
		{"new", c.Other},
	} {
		for i, line := range part.lines {
			if i == 0 {
				b.WriteString("  " + part.title + ":\n")
			}
			b.WriteString("    " + line + "\n")
		}
	}
	return cmp.Or(b.String(), "  nothing has changed\n")
}
