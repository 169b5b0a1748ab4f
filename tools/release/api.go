package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/forbear-go/forbear/tools/release/internal/api"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// unreleased is the version in go.work before the first release.
const unreleased = "v0.0.0"

// compare says what has become of what the modules export since the last version, and
// refuses what may break users unless it is written down. Since another commit it only
// says it.
func compare(ctx context.Context, root string, args []string) error {
	f := flag.NewFlagSet("release api", flag.ContinueOnError)
	update := f.Bool("update", false, "write down what may break users")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 1 || *update && f.NArg() > 0 {
		return errors.New("api: want -update, or one commit, or neither")
	}
	w, err := workspace.Read(root)
	if err != nil {
		return err
	}
	since := cmp.Or(f.Arg(0), w.Version)
	if since == unreleased {
		fmt.Println("nothing was released yet, and nothing can break: make api SINCE=main compares with a commit")
		return nil
	}
	c, err := api.Since(ctx, w, since)
	if err != nil {
		return err
	}
	fmt.Printf("exported, since %s:\n%s", since, c)
	switch {
	case f.NArg() > 0:
		return nil
	case *update:
		return c.Write(root)
	default:
		return c.Meant(root)
	}
}
