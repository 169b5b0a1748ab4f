// Package verb makes a command of a table of verbs, such as list, show and discard. A
// verb says which operand it takes and what it does. What all of them have in common
// is here: the command line is checked before anything is opened, results are text or
// JSON, and errors become exit codes.
package verb

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook/store"
)

// Verb is one thing that a command does.
type Verb struct {
	Name     string
	Operand  string // what its operand is, such as "the id of a letter"; "": it takes none
	Optional bool   // the operand may be left out
	Most     int    // how many operands it takes, if more than one
	// Check says what else is wrong with the command line. It may be nil.
	Check func() error
	// Do returns [ErrNegative], or an error that [Negative] made, for exit code 1.
	Do func(context.Context) error
}

// Run is one run of a command. All its verbs share one set of flags, so that flags
// may stand before the verb; a flag that a verb has no use for is ignored.
type Run struct {
	*cli.Streams

	Name     string   // of the command
	Operands []string // behind the verb
	ID       string   // the first of them, or ""
	Format   string   // text or json
	Actor    string   // the name for the audit

	// FlagsFirst says that an operand may begin with a dash: behind the first one
	// there are no flags.
	FlagsFirst bool
	// Open opens what the verbs work on, and Close closes it. Both may be nil.
	Open  func(context.Context) error
	Close func() error

	given map[string]bool // the flags on the command line
}

// Command returns a command of the verbs that setup returns. Setup registers the flags.
// The Usage of c names the same verbs, in the same order.
func Command(c cli.Command, setup func(*Run, *flag.FlagSet) []Verb) *cli.Command {
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		r := &Run{Streams: std, Name: c.Name, Format: "text", given: map[string]bool{}}
		verbs := setup(r, f)
		words, code, done := r.words(&c, f, args)
		if done {
			return code
		}
		f.Visit(func(fl *flag.Flag) { r.given[fl.Name] = true })
		v, err := r.choose(&c, verbs, words)
		if err != nil {
			return std.Fail("%s: %v (see forbear %s --help)", c.Name, err, c.Name)
		}
		return r.exit(r.do(ctx, v))
	}
	return &c
}

// words returns the verb and its operands.
func (r *Run) words(c *cli.Command, f *flag.FlagSet, args []string) (words []string, code int, done bool) {
	if !r.FlagsFirst {
		return c.Operands(r.Streams, f, args)
	}
	name, args := cli.Verb(args)
	if code, done := c.Parse(r.Streams, f, args, len(args)); done || name == "" {
		return nil, code, done
	}
	code, ok := c.Knows(r.Streams, name)
	return append([]string{name}, f.Args()...), code, !ok
}

// choose returns the verb that was asked for, with its operands in r. A slip is found
// here, before anything is opened: it never does half of what was meant.
func (r *Run) choose(c *cli.Command, verbs []Verb, words []string) (v Verb, err error) {
	if len(words) == 0 {
		return v, fmt.Errorf("which verb? want %s", cli.OneOf(c.Verbs()))
	}
	v = verbs[slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == words[0] })] // Operands knows them all
	most := v.Most
	if most == 0 && v.Operand != "" {
		most = 1
	}
	r.Operands = words[1:]
	switch {
	case len(r.Operands) > most && r.FlagsFirst && slices.ContainsFunc(r.Operands, func(o string) bool { return strings.HasPrefix(o, "-") }):
		return v, fmt.Errorf("%s: flags must come before other arguments", v.Name)
	case len(r.Operands) > most:
		return v, fmt.Errorf("%s: unexpected argument %q", v.Name, r.Operands[most])
	case len(r.Operands) > 0:
		r.ID = r.Operands[0]
	case v.Operand != "" && !v.Optional:
		return v, fmt.Errorf("%s needs %s", v.Name, v.Operand)
	}
	if r.Format != "text" && r.Format != "json" {
		return v, fmt.Errorf("unknown format %q: want text or json", r.Format)
	}
	if v.Check != nil {
		err = v.Check()
	}
	return v, err
}

func (r *Run) do(ctx context.Context, v Verb) error {
	if r.Open != nil {
		if err := r.Open(ctx); err != nil {
			return err
		}
	}
	if r.Close != nil {
		// All was written by then: an error on closing changes no result.
		defer func() { _ = r.Close() }()
	}
	return v.Do(ctx)
}

// ErrNegative is a negative result of which all has been said.
var ErrNegative = errors.New("negative")

// Negative returns a negative result, which is said on standard error: standard output
// stays empty for the program that it is piped into.
func Negative(format string, args ...any) error {
	return negative{fmt.Errorf(format, args...)}
}

type negative struct{ error }

// negatives are errors of the stores that are results: what was named is not there, or
// is in a state in which it cannot be done.
var negatives = []error{
	queue.ErrNotFound, queue.ErrState, queue.ErrRedriveLimit, store.ErrSending,
	idempotency.ErrNotFound, idempotency.ErrNotHeld, sqlstore.ErrTokenNotFound,
}

// exit says an error and returns its exit code: 1 for a negative result, and 2 for what
// kept the command from deciding, so that a script can distinguish an empty queue from
// a broken database.
func (r *Run) exit(err error) int {
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.Is(err, ErrNegative):
		return cli.ExitFound
	}
	code := r.Fail("%s: %v", r.Name, err)
	_, result := errors.AsType[negative](err)
	if result || slices.ContainsFunc(negatives, func(n error) bool { return errors.Is(err, n) }) {
		return cli.ExitFound
	}
	return code
}

// FormatFlag registers -o.
func (r *Run) FormatFlag(f *flag.FlagSet, usage string) {
	f.StringVar(&r.Format, "o", "text", usage)
}

// ActorFlag registers --actor. The name is not verified: access to the database or the
// token is what authorizes.
func (r *Run) ActorFlag(f *flag.FlagSet, usage string) { cli.ActorFlag(f, &r.Actor, usage) }

// Given reports whether one of the flags is on the command line. A filter with an empty
// value is a filter too.
func (r *Run) Given(flags ...string) bool {
	return slices.ContainsFunc(flags, func(name string) bool { return r.given[name] })
}

// Confirm asks whether something that cannot be undone is meant, unless yes says so.
// Its error says that nothing was done.
func (r *Run) Confirm(yes bool, question, done string) error {
	if yes || cli.Confirm(r.Streams, question) {
		return nil
	}
	return Negative("nothing was %s", done)
}
