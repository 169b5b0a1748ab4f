// Package run runs the commands that a release is made of: git and go.
package run

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	c.Env = append(append(os.Environ(), "PWD="+dir), env...)
	return c
}

// Flags returns GOFLAGS of the environment with more behind it.
func Flags(more string) string {
	return "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" "+more)
}
