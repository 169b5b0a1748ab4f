// Package run runs the commands that a release is made of: git and go.
package run

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Env is what a command finds in its environment, beside what is there already.
type Env []string

// Output runs a command in a folder and returns what it prints. An error has what it
// said on the other stream.
func Output(ctx context.Context, dir string, env Env, name string, args ...string) (string, error) {
	c := command(ctx, dir, env, name, args...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s in %s: %w\n%s%s", strings.Join(c.Args, " "), dir, err, out.String(), said.String())
	}
	return out.String(), nil
}

// Quiet is Output for those who want to know only whether it went well.
func Quiet(ctx context.Context, dir string, env Env, name string, args ...string) error {
	_, err := Output(ctx, dir, env, name, args...)
	return err
}

// Shown runs a command whose output is for the person in front.
func Shown(ctx context.Context, dir string, env Env, name string, args ...string) error {
	c := command(ctx, dir, env, name, args...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w", strings.Join(args, " "), dir, err)
	}
	return nil
}

// Git is Output of git, without the line's end.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := Output(ctx, dir, nil, "git", args...)
	return strings.TrimSpace(out), err
}

func command(ctx context.Context, dir string, env Env, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.WaitDelay = 10 * time.Second // for what it has started, which may hold its output open
	c.Env = append(append(environment(), "PWD="+dir), env...)
	return c
}

// place are variables by which git takes another repository than that of its folder: a
// hook, and a step of a rebase, have them.
var place = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX"}

func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(place, name)
	})
}

// Flags returns GOFLAGS of the environment with more behind it.
func Flags(more string) string {
	return "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" "+more)
}
