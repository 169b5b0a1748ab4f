package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// changedFiles returns the files that differ from a git revision, untracked ones
// included, by the names that [real] gives them; nil when rev is empty.
// The comparison is with the working tree and not with HEAD, so that it covers
// what is not committed yet. Deleted files are left out. Git quotes odd names
// unless -z is given.
func changedFiles(ctx context.Context, dir, rev string) (map[string]bool, error) {
	if rev == "" {
		return nil, nil
	}
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	top := strings.TrimSpace(string(root))
	// A shallow clone lacks the revision, and the message has to say so: git's own
	// does not.
	if _, err := git(ctx, top, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}"); err != nil {
		return nil, fmt.Errorf("--since: git knows no revision %q (in CI, fetch the history: fetch-depth: 0)", rev)
	}
	diff, err := git(ctx, top, "diff", "--name-only", "-z", "--diff-filter=d", rev, "--")
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	untracked, err := git(ctx, top, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	set := map[string]bool{}
	for name := range bytes.SplitSeq(append(diff, untracked...), []byte{0}) {
		if len(name) > 0 {
			set[real(filepath.Join(top, filepath.FromSlash(string(name))))] = true
		}
	}
	return set, nil
}

// real is the name of a file without symbolic links, or the name itself where that
// cannot be known. Git resolves the links on the way to a checkout and the go
// command does not, so that one file has two names.
func real(name string) string {
	if r, err := filepath.EvalSymlinks(name); err == nil {
		return r
	}
	return name
}

// git runs git in dir and returns what it prints.
// Its error holds what git printed, which says more than the exit code.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
