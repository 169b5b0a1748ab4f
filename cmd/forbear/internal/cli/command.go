// Package cli is the vocabulary of forbear's commands: how a command describes
// itself, what it reads and writes, and which exit codes it ends with. It knows
// none of the commands; main lists them.
//
// A command is a value, not an interface: its words for help are data, and Run
// is a function. It gets its streams and a context and returns an exit code, so
// that a test runs it in its own process, as [Program] does.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/flaghint"
)

// The exit codes of every command. Scripts and pipelines branch on them, so a
// finding is never mistaken for a typing error: whether 1 fails a build is the
// caller's choice, and 2 always should.
const (
	ExitOK    = 0 // pass
	ExitFound = 1 // findings, or a negative answer
	ExitUsage = 2 // could not judge: bad usage, unreadable input
)

// Command is one subcommand. Name, Summary and Run are needed; what is empty of
// the rest is left out of --help.
type Command struct {
	Name     string
	Summary  string // one line, for the list
	Usage    string // what follows "forbear NAME"; see Verbs
	About    string // paragraphs, for --help
	Examples string
	// Run gets the arguments after the name. It ends early when ctx does.
	Run func(ctx context.Context, std *Streams, args []string) int
}

// Streams are what a command reads and writes. Results go to Out and nothing
// else does, so that it can be piped; faults and progress go to Err. In may be
// nil for a command that reads nothing.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	describe func(*flag.FlagSet) // set where the flags are wanted, and no run
}

// Fail says on standard error why the command could not judge, and returns
// ExitUsage, for a return statement. Every fault begins with "forbear: ", so
// that it can be told apart in the log of a pipeline.
func (s *Streams) Fail(format string, args ...any) int {
	fmt.Fprintf(s.Err, "forbear: "+format+"\n", args...)
	return ExitUsage
}

// WriteJSON writes v as indented JSON, for documents that people read and diff.
// What is a line among many, a program reads: that stays on one line, and each
// command writes it itself.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Flags returns the command's flag set. It writes nothing by itself: Parse writes
// errors and help, in the form that all commands share.
func (c *Command) Flags() *flag.FlagSet {
	f := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// Registered returns the flags of the command as they are before a command line
// is parsed. The command is run as far as its first Parse, as --help does, so that
// there is no second list of flags to go stale.
func (c *Command) Registered() *flag.FlagSet {
	found := c.Flags()
	std := &Streams{Out: io.Discard, Err: io.Discard, describe: func(f *flag.FlagSet) { found = f }}
	c.Run(context.Background(), std, []string{"--help"})
	return found
}

// Described hands the flags over where they alone are wanted, and reports that the
// command is over then. Parse asks it; so does a command that parses by itself.
func (s *Streams) Described(f *flag.FlagSet) bool {
	if s.describe == nil {
		return false
	}
	s.describe(f)
	return true
}

// Parse reads the flags, of which at most operands arguments may remain. done
// says that the command is over, with that exit code: help was asked for, or
// the usage was wrong.
func (c *Command) Parse(std *Streams, f *flag.FlagSet, args []string, operands int) (code int, done bool) {
	if std.Described(f) {
		return ExitOK, true
	}
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(std.Out, f)
		return ExitOK, true
	case err != nil:
		return std.Fail("%s: %s%s (see forbear %s --help)", c.Name, explained(f, err), flaghint.Of(f, err), c.Name), true
	case f.NArg() > operands:
		return std.Fail("%s: unexpected argument %q (see forbear %s --help)", c.Name, f.Arg(operands), c.Name), true
	}
	return ExitOK, false
}

// Operands parses flags that may stand before, between and behind operands, which
// package flag does not allow: it stops at the first operand. Behind "--" all are
// operands. Of a command with verbs the first operand is one. As far as done and
// code go it is Parse; how many operands there may be is the command's to check.
func (c *Command) Operands(std *Streams, f *flag.FlagSet, args []string) (operands []string, code int, done bool) {
	var literal []string
	if end := slices.Index(args, "--"); end >= 0 {
		args, literal = args[:end], args[end+1:]
	}
	for {
		if code, done := c.Parse(std, f, args, len(args)); done {
			return nil, code, true
		}
		if f.NArg() == 0 {
			break
		}
		operands = append(operands, f.Arg(0))
		args = f.Args()[1:]
	}
	operands = append(operands, literal...)
	if len(operands) > 0 {
		if code, ok := c.Knows(std, operands[0]); !ok {
			return nil, code, true
		}
	}
	return operands, ExitOK, false
}

// help writes the command's manual: what --help and forbear help NAME print.
func (c *Command) help(w io.Writer, f *flag.FlagSet) {
	fmt.Fprintf(w, "forbear %s: %s\n\n", c.Name, c.Summary)
	fmt.Fprintf(w, "Usage: %s\n", strings.TrimSpace("forbear "+c.Name+" "+c.Usage))
	if c.About != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.About))
	}
	any := false
	f.VisitAll(func(*flag.Flag) { any = true })
	if any {
		fmt.Fprint(w, "\nFlags:\n")
		f.SetOutput(w)
		f.PrintDefaults()
	}
	if c.Examples != "" {
		fmt.Fprint(w, "\nExamples:\n")
		for line := range strings.Lines(strings.TrimSpace(c.Examples)) {
			fmt.Fprint(w, "  ", line)
		}
		fmt.Fprintln(w)
	}
}
