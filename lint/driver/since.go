package driver

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// since returns what tells whether a file differs from a git revision. Untracked
// files differ, and so does what is not committed yet. It is nil when rev is empty.
//
// Git is asked for the names and sums of the revision alone, and the files are
// compared here: git diff would run what the configuration of a checkout names,
// such as filters and a monitor of files, and the checkout may be anyone's.
func since(ctx context.Context, dir, rev string) (differs func(file string) bool, err error) {
	if rev == "" {
		return nil, nil
	}
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	top := real(strings.TrimSpace(string(root)))
	// A shallow clone lacks the revision, and the message has to say so: git's own
	// does not.
	commit, err := git(ctx, top, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("--since: git has no revision %q (in CI, fetch the history: fetch-depth: 0)", rev)
	}
	list, err := git(ctx, top, "ls-tree", "-r", "-z", "--full-tree", strings.TrimSpace(string(commit)))
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	sums := map[string]string{}
	for entry := range strings.SplitSeq(string(list), "\x00") {
		// An entry is MODE blob SUM, a tab, and the name.
		if about, name, ok := strings.Cut(entry, "\t"); ok {
			sums[name] = about[strings.LastIndex(about, " ")+1:]
		}
	}
	return func(file string) bool {
		name, err := filepath.Rel(top, real(file))
		if err != nil || !filepath.IsLocal(name) {
			return false // it is not of this checkout
		}
		src, err := os.ReadFile(file)
		sum := sums[filepath.ToSlash(name)]
		// Git may have made the line ends of the system of them.
		return err != nil || sum != blob(src, len(sum)) && sum != blob(bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), len(sum))
	}, nil
}

// blob is the sum by which git knows the contents of a file, of so many digits.
func blob(src []byte, digits int) string {
	var h hash.Hash = sha1.New()
	if digits == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(src))
	h.Write(src)
	return hex.EncodeToString(h.Sum(nil))
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

// git runs git in dir and returns what it prints. Its error holds what git
// printed, which says more than the exit code. What a partial clone lacks is not
// fetched, since the configuration says by which program.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
