// Command release makes releases of forbear's modules, and holds them to what a
// release needs.
//
//	release alone CMD ARGS...    run a command in each module, without the workspace
//	release tidy                 go mod tidy in each module
//	release api [-update | SINCE]
//	                             say what has become of what the modules export
//	release cut [-n] [-quick] VERSION
//	                             release all modules: commit, tags, notes; push nothing
//
// It is run at the root of a checkout, by the Makefile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/forbear-go/forbear/tools/release/internal/cut"
	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: want alone, api, cut or tidy")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	switch command, rest := args[0], args[1:]; command {
	case "alone":
		return alone(ctx, root, rest)
	case "api":
		return compare(ctx, root, rest)
	case "cut":
		return release(ctx, root, rest)
	case "tidy":
		return tidy(ctx, root)
	default:
		return fmt.Errorf("unknown command %q: want alone, api, cut or tidy", command)
	}
}

func release(ctx context.Context, root string, args []string) error {
	f := flag.NewFlagSet("release cut", flag.ContinueOnError)
	o := cut.Options{Log: os.Stdout}
	f.BoolVar(&o.Rehearse, "n", false, "rehearse: do everything in a clone, and leave the repository as it is")
	f.BoolVar(&o.Quick, "quick", false, "do not run the tests of each module")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("cut: want one version, such as v0.1.0")
	}
	return cut.Release(ctx, root, f.Arg(0), o)
}

// alone runs a command in each module as its users build it, but for its siblings,
// which are the checkout's. It goes on after a failure.
func alone(ctx context.Context, root string, args []string) error {
	if len(args) == 0 {
		return errors.New("alone: no command")
	}
	return each(ctx, root, func(_ *workspace.Workspace, m workspace.Module, modfile string) error {
		fmt.Printf("%s  %s\n", strings.Join(args, " "), m.Dir)
		return run.Shown(ctx, filepath.Join(root, m.Dir), run.Env{"GOWORK=off", run.Flags("-modfile=" + modfile)}, args[0], args[1:]...)
	})
}

// tidy writes the requirements that each module needs, and no others.
func tidy(ctx context.Context, root string) error {
	return each(ctx, root, func(w *workspace.Workspace, m workspace.Module, modfile string) error {
		if err := run.Shown(ctx, filepath.Join(root, m.Dir), run.Env{"GOWORK=off"}, "go", "mod", "tidy", "-modfile="+modfile); err != nil {
			return err
		}
		return w.Adopt(m, filepath.Dir(modfile))
	})
}

func each(ctx context.Context, root string, f func(*workspace.Workspace, workspace.Module, string) error) error {
	w, err := workspace.Read(root)
	if err != nil {
		return err
	}
	failed := 0
	for _, m := range w.Modules {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := in(w, m, f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d modules failed", failed, len(w.Modules))
	}
	return nil
}

func in(w *workspace.Workspace, m workspace.Module, f func(*workspace.Workspace, workspace.Module, string) error) error {
	dir, err := os.MkdirTemp("", "forbear-alone")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	modfile, err := w.Alone(m, dir)
	if err != nil {
		return err
	}
	return f(w, m, modfile)
}
