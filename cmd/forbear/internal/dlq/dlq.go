// Package dlq is the command dlq: what an operator does with dead letters. It
// works on the database itself and not through serve's API, so that letters can
// be looked at while no process serves. Only the sending of a redrive is left to
// a running serve, which paces it and counts its outcomes.
package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
)

// Command returns the command dlq.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "dlq",
		Summary: "list, show, redrive, discard, export and count dead letters",
		Usage:   strings.Join(verbNames(), "|") + " [FLAGS] [ID]",
		About: `
Dlq works on the database that serve works on: an SQLite file beside it, or the
same PostgreSQL from anywhere.

  stats                     count letters by queue, reason and state, and by cause
  list                      one line for each letter, the oldest first
  show ID                   one letter with its history
  redrive ID | FILTER       send letters on their way again, with their id and key
  redrives                  the redrives and how far they are
  pause, resume, cancel ID  a redrive
  discard ID | FILTER --why REASON
                            give letters up; they stay listed until they expire
  export                    letters as lines of JSON
  read FILE                 print an export that serve has written and encrypted
  audit                     who revealed, redrove and discarded what

Lists and exports mask payloads and credentials; --reveal shows them, and is
written to the audit trail with your name first. Errors are shown without what
they quote.

A cause is what letters have in common that one mend brings back: a destination,
an error type, and the text of the error but for numbers and quoted parts.

Redrive sends the letters that the filter chooses: --dry-run only counts them;
--canary sends one, and the others when it was delivered. A running serve does
the sending, at --rate a second, and stops when more than --stop-ratio of the
outcomes are failures. Without a filter flag, an id, or --all it refuses, and so
does discard.

Exit code 1 means that nothing was found, or that a redrive was stopped.`,
		Examples: `
forbear dlq stats
forbear dlq list --reason exhausted --since 24h
forbear dlq show --reveal dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq redrive --cause 5f1c09a2b3d4 --dry-run
forbear dlq redrive --destination acme --dry-run
forbear dlq redrive --destination acme --canary --rate 50 --wait
forbear dlq discard --why "test data" dlq_01jd3x6v9k8e5m2n4p7q
forbear dlq discard --why "the customer has left" --destination acme --dry-run
forbear dlq export --state dead > letters.jsonl
forbear dlq read --encryption-key-file key dead-letters-2026-03-01.jsonl
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		q := &dlq{std: std}
		q.register(f)
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		if len(words) == 0 {
			return std.Fail("dlq: what shall be done? want %s (see forbear dlq --help)", strings.Join(verbNames(), ", "))
		}
		verb, operands := words[0], words[1:]
		// Visit knows which flags were given: a filter flag with an empty
		// value is a filter too.
		f.Visit(func(fl *flag.Flag) { q.filtered = q.filtered || filterFlags[fl.Name] })
		if err := q.check(verb, operands); err != nil {
			return std.Fail("dlq: %v", err)
		}
		return q.run(ctx, verb)
	}
	return c
}

// dlq is one run of the command. It has the flags of all verbs, since one
// flag set is parsed before the verb is known. A flag that a verb has no use
// for is ignored, as with --limit and show.
type dlq struct {
	std      *cli.Streams
	db       *database.DB
	cipher   deadletter.Cipher // nil without a key file
	database string
	keys     database.KeyFiles
	id       string // the operand, or ""
	filtered bool   // a flag chooses letters

	filter deadletter.Filter
	format string // text or json
	who    string // for the audit
	why    string // of a discard
	reveal bool   // payloads and credentials too

	// Of a redrive.
	job    deadletter.Job // its rate and its limits
	all    bool           // every letter, without a filter
	dryRun bool           // only count
	wait   bool           // until it is over
}

// verb is one thing that dlq does. It returns the exit code, or an error
// that run turns into one: 1 for a negative result, 2 for anything else.
type verb struct {
	operand string // what its operand is; "" takes none
	needed  bool
	do      func(*dlq, context.Context) (int, error)
}

// verbs are all verbs by name. What is redriven or discarded is chosen by an id or
// by a filter, so that these take an operand and do not need one.
var verbs = map[string]verb{
	"stats":    {"", false, (*dlq).stats},
	"list":     {"", false, (*dlq).list},
	"show":     {"the id of a letter", true, (*dlq).show},
	"discard":  {"the id of a letter", false, (*dlq).discard},
	"export":   {"", false, (*dlq).export},
	"read":     {"the file of an export", true, (*dlq).read},
	"audit":    {"", false, (*dlq).audits},
	"redrive":  {"the id of a letter", false, (*dlq).redrive},
	"redrives": {"", false, (*dlq).redrives},
	"pause":    {"the id of a redrive", true, setJob(deadletter.JobPaused)},
	"resume":   {"the id of a redrive", true, setJob(deadletter.JobRunning)},
	"cancel":   {"the id of a redrive", true, setJob(deadletter.JobCanceled)},
}

// verbNames lists the verbs in the order of the alphabet.
func verbNames() []string { return slices.Sorted(maps.Keys(verbs)) }

// check says what is wrong with the command line, before the database is
// opened, and takes the operand. A slip then costs nothing, and never half
// an action.
func (q *dlq) check(name string, operands []string) error {
	v := verbs[name] // Operands knows them all
	switch {
	case q.format != "text" && q.format != "json":
		return fmt.Errorf("unknown format %q: want text or json", q.format)
	case q.filter.Limit < 1 || q.filter.Limit > deadletter.MaxList:
		return fmt.Errorf("--limit %d is not 1 to %d", q.filter.Limit, deadletter.MaxList)
	case v.needed && len(operands) == 0:
		return fmt.Errorf("%s wants %s", name, v.operand)
	case v.operand == "" && len(operands) > 0, len(operands) > 1:
		return fmt.Errorf("%s: unexpected argument %q", name, operands[len(operands)-1])
	}
	if len(operands) > 0 {
		q.id = operands[0]
	}
	return nil
}

// run opens the database and executes the verb. A letter that does not
// exist, or is in another state, is a negative result: exit code 1. What
// keeps the command from deciding is exit code 2, so that a script can distinguish
// an empty queue from a broken database.
func (q *dlq) run(ctx context.Context, name string) int {
	if err := q.open(ctx); err != nil {
		return q.std.Fail("dlq: %v", err)
	}
	// Everything was written by then: an error on closing changes no
	// result.
	defer func() { _ = q.db.Close() }()
	if err := q.db.UpToDate(ctx); err != nil {
		return q.std.Fail("dlq: %v", err)
	}
	code, err := verbs[name].do(q, ctx)
	switch {
	case errors.Is(err, deadletter.ErrNotFound), errors.Is(err, deadletter.ErrState), errors.Is(err, deadletter.ErrRedriveLimit):
		q.std.Fail("dlq: %v", err)
		return cli.ExitFound
	case err != nil:
		return q.std.Fail("dlq: %v", err)
	}
	return code
}

// open opens the database with the key that serve encrypts payloads under.
// Without the key the letters are listed all the same, and payloads cannot
// be revealed.
func (q *dlq) open(ctx context.Context) error {
	c, err := q.keys.Cipher()
	if err != nil {
		return err
	}
	if err := database.Exists(q.database); err != nil {
		return err
	}
	q.cipher = c
	if q.db, err = database.Open(ctx, q.database, sqlstore.WithCipher(c)); err != nil {
		return err
	}
	q.db.Note(slog.Default())
	return nil
}

// json writes v as a line of JSON and reports true, when that format was
// asked for. The caller writes text otherwise.
func (q *dlq) json(v any) bool {
	if q.format != "json" {
		return false
	}
	// One letter a line: a list can be piped into jq or split by lines.
	enc := json.NewEncoder(q.std.Out)
	enc.SetEscapeHTML(false) // payloads are shown as they are
	_ = enc.Encode(v)
	return true
}

// nothing reports that nothing was found, on standard error: standard output
// stays empty for the program that it is piped into.
func (q *dlq) nothing(what string) (int, error) {
	q.std.Fail("dlq: %s", what)
	return cli.ExitFound, nil
}
