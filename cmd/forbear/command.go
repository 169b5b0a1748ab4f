package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/forbear-go/forbear/internal/nearest"
)

// The exit codes of every command.
const (
	exitOK    = 0 // pass
	exitFound = 1 // findings, or a negative answer
	exitUsage = 2 // could not judge: bad usage, unreadable input
)

// command is one subcommand.
type command struct {
	name     string
	summary  string // one line, for the list
	usage    string // what follows "forbear NAME"
	about    string // paragraphs, for --help
	examples string
	// run gets the arguments after the name. It ends early when ctx does.
	run func(ctx context.Context, std *streams, args []string) int
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole program, but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	std := &streams{stdin, stdout, stderr}
	if len(args) == 0 {
		overview(stderr)
		return exitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help":
		args[0] = "help"
	case "-version", "--version":
		args[0] = "version"
	}
	c, ok := find(args[0])
	if !ok {
		return std.unknown(args[0])
	}
	return c.run(ctx, std, args[1:])
}

func find(name string) (*command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return nil, false
}

// unknown refuses a command that does not exist, naming the nearest that does.
func (s *streams) unknown(name string) int {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	if near, ok := nearest.Of(name, names); ok {
		return s.fail("unknown command %q: did you mean %s?", name, near)
	}
	return s.fail("unknown command %q: see forbear help", name)
}

// fail says on standard error why the command could not judge.
func (s *streams) fail(format string, args ...any) int {
	fmt.Fprintf(s.err, "forbear: "+format+"\n", args...)
	return exitUsage
}

// flags returns the command's flag set. Its errors and help are written by
// parse.
func (c *command) flags() *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads the flags, of which at most operands arguments may remain. done
// says that the command is over, with that exit code: help was asked for, or
// the usage was wrong.
func (c *command) parse(std *streams, f *flag.FlagSet, args []string, operands int) (code int, done bool) {
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(std.out, f)
		return exitOK, true
	case err != nil:
		return std.fail("%s: %v (see forbear %s --help)", c.name, err, c.name), true
	case f.NArg() > operands:
		return std.fail("%s: unexpected argument %q (see forbear %s --help)", c.name, f.Arg(operands), c.name), true
	}
	return exitOK, false
}

// help writes the command's manual.
func (c *command) help(w io.Writer, f *flag.FlagSet) {
	fmt.Fprintf(w, "forbear %s: %s\n\n", c.name, c.summary)
	fmt.Fprintf(w, "Usage: %s\n", strings.TrimSpace("forbear "+c.name+" "+c.usage))
	if c.about != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.about))
	}
	any := false
	f.VisitAll(func(*flag.Flag) { any = true })
	if any {
		fmt.Fprint(w, "\nFlags:\n")
		f.SetOutput(w)
		f.PrintDefaults()
	}
	if c.examples != "" {
		fmt.Fprint(w, "\nExamples:\n")
		for line := range strings.Lines(strings.TrimSpace(c.examples)) {
			fmt.Fprint(w, "  ", line)
		}
		fmt.Fprintln(w)
	}
}

// overview lists the commands.
func overview(w io.Writer) {
	fmt.Fprint(w, "forbear: retries that know when to stop\n\nUsage: forbear COMMAND [FLAGS]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nforbear COMMAND --help tells more, with examples.\n"+
		"Exit codes: 0 pass, 1 findings or a negative answer, 2 could not judge.\n")
}
