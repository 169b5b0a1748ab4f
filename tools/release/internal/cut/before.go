package cut

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// before refuses what no release can begin with, and returns the last version, which
// is empty before the first.
func before(ctx context.Context, w *workspace.Workspace, version string) (last string, err error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return "", fmt.Errorf("%q is not a version: want one like v0.1.0", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return "", fmt.Errorf("%s: the modules' paths would have to end in /%s", version, major)
	}
	if err := onMain(ctx, w.Root); err != nil {
		return "", err
	}
	changed, err := run.Git(ctx, w.Root, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("the checkout has changes:\n%s", changed)
	}
	shallow, err := run.Git(ctx, w.Root, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	if shallow != "false" {
		return "", errors.New("the clone is shallow, and need not have the last version: git fetch --unshallow --tags")
	}
	out, err := run.Git(ctx, w.Root, "tag", "--list")
	if err != nil {
		return "", err
	}
	tags := strings.Fields(out)
	for _, m := range w.Released() {
		if tag := m.Tag(version); slices.Contains(tags, tag) {
			return "", fmt.Errorf("there is a tag %s already: a version is released once", tag)
		}
	}
	last = newest(tags)
	if last != "" && semver.Compare(version, last) <= 0 {
		return "", fmt.Errorf("%s does not come after %s, the last version", version, last)
	}
	return last, nil
}

func onMain(ctx context.Context, root string) error {
	branch, err := run.Git(ctx, root, "rev-parse", "--abbrev-ref", "HEAD")
	if err == nil && branch != "main" {
		err = fmt.Errorf("releases are made on main, and this is %s: git switch main", branch)
	}
	return err
}

// newest returns the highest version among the tags of the root module.
func newest(tags []string) string {
	var last string
	for _, tag := range tags {
		if semver.IsValid(tag) && (last == "" || semver.Compare(tag, last) > 0) {
			last = tag
		}
	}
	return last
}
