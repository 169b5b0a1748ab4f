// Package messages is the command messages: what an operator does with messages that
// forbear has accepted. It works on the database itself, as dlq does, and leaves
// the sending to a running serve.
package messages

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// Command returns the command messages.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "messages",
		Summary: "list, show, cancel, erase and send messages again",
		Usage:   "list | show ID | cancel ID | send-again ID | erase ID [FLAGS]",
		About: `
Messages works on the database that serve works on: an SQLite file beside it, or
the same PostgreSQL from anywhere. A message is one at one endpoint: each has a
state of its own.

  list                      one line for each message, the newest first
  show ID                   a message at each of its endpoints, with its attempts
  cancel ID | FILTER        what waits is canceled; what is being sent is canceled
                            unless the attempt under way ends it
  send-again ID | FILTER    what was delivered, canceled or is dead is due again, as
                            the same message; a dead letter at most three times
  erase ID | FILTER         what was sent and responded goes, at once and for good,
                            with what dead letters have of it; --yes does not ask

Show has payloads, values of headers and what receivers responded with --reveal
alone, which is written to the audit trail with your name first. What is being sent
is not erased: cancel it, or wait. Without an id, a filter flag or --all, cancel,
send-again and erase refuse; --dry-run only counts.

Exit code 1 means that nothing was found, or that nothing could be changed.`,
		Examples: `
forbear messages list --endpoint acme --state waiting --state held
forbear messages list --type order.shipped --since 24h -o json
forbear messages show order-4711
forbear messages show --reveal order-4711
forbear messages erase order-4711
forbear messages erase --application acme --dry-run
forbear messages cancel --endpoint acme order-4711
forbear messages send-again --endpoint acme --state dead --since 2h --dry-run
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		r := &run{std: std}
		r.register(f)
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		f.Visit(func(fl *flag.Flag) { r.filtered = r.filtered || filterFlags[fl.Name] })
		if err := r.check(words); err != nil {
			return std.Fail("messages: %v (see forbear messages --help)", err)
		}
		code, err := r.run(ctx, words[0])
		if err != nil {
			return std.Fail("messages: %v", err)
		}
		return code
	}
	return c
}

// run is one run of the command.
type run struct {
	std      *cli.Streams
	store    *sqlstore.Webhooks
	db       *database.DB
	database string
	keys     database.KeyFiles
	filtered bool // a flag chooses messages

	filter webhook.MessageFilter
	after  int64
	limit  int
	format string
	who    string
	reveal bool
	all    bool
	dryRun bool
	yes    bool
}

// filterFlags are those that choose messages.
var filterFlags = map[string]bool{"endpoint": true, "application": true, "type": true, "key": true, "state": true, "since": true, "until": true}

// states are those that a filter can name.
var states = []string{webhook.StateWaiting, webhook.StateHeld, webhook.StateSending, webhook.StateCanceling, webhook.StateDelivered, webhook.StateDead, webhook.StateCanceled}

// maxLimit bounds a list.
const maxLimit = 100_000

func (r *run) register(f *flag.FlagSet) {
	database.Flag(f, &r.database, database.Usage)
	database.KeyFlag(f, &r.keys, "the `file` with the key that serve encrypts payloads under")
	f.Func("endpoint", "messages to this `endpoint`; given several times, to any of them", add(&r.filter.Endpoints, nil))
	f.StringVar(&r.filter.Application, "application", "", "messages to endpoints of this `application`")
	f.StringVar(&r.filter.Type, "type", "", "messages of this `type`")
	f.StringVar(&r.filter.Key, "key", "", "messages with this `key`")
	f.Func("state", "messages in this `state`: waiting, held, sending, canceling, delivered, dead or canceled; given several times, in any of them", add(&r.filter.States, states))
	f.Func("since", "accepted from this `time` on: RFC 3339, or an age such as 24h", cli.TimeFlag(&r.filter.Since))
	f.Func("until", "accepted before this `time`", cli.TimeFlag(&r.filter.Until))
	f.Int64Var(&r.after, "after", 0, "list: go on behind the page that ended with this `number`")
	f.IntVar(&r.limit, "limit", 100, "list: at most this `many`, up to 100000")
	f.StringVar(&r.format, "o", "text", "list, show: output format: `text or json`")
	f.BoolVar(&r.reveal, "reveal", false, "show: payloads, values of headers and responses too; audited")
	f.BoolVar(&r.yes, "yes", false, "erase: do not ask")
	f.BoolVar(&r.all, "all", false, "cancel, send-again, erase: all that can be")
	f.BoolVar(&r.dryRun, "dry-run", false, "cancel, send-again, erase: only count")
	cli.ActorFlag(f, &r.who, "your `name`, for the audit")
}

// add adds a value to a list; without known values any is taken.
func add(list *[]string, known []string) func(string) error {
	return func(v string) error {
		if known != nil && !slices.Contains(known, v) {
			return fmt.Errorf("want one of %q", known)
		}
		*list = append(*list, v)
		return nil
	}
}

// check says what is wrong with the command line before a database is opened.
func (r *run) check(words []string) error {
	switch {
	case len(words) == 0:
		return errors.New("list, show, cancel, send-again or erase?")
	case len(words) > 2 || words[0] == "list" && len(words) > 1:
		return fmt.Errorf("%s takes no %q", words[0], words[len(words)-1])
	case words[0] == "show" && len(words) == 1:
		return errors.New("show wants the id of a message")
	case r.limit < 1 || r.limit > maxLimit:
		return fmt.Errorf("--limit %d is outside 1-%d", r.limit, maxLimit)
	case r.format != "text" && r.format != "json":
		return fmt.Errorf("unknown format %q: want text or json", r.format)
	}
	if len(words) == 2 {
		r.filter.ID = words[1]
	}
	a, acts := acts[words[0]]
	switch {
	case !acts:
	case r.filter.ID == "" && !r.filtered && !r.all:
		return fmt.Errorf("%s wants an id, a filter flag or --all", words[0])
	default:
		for _, state := range r.filter.States {
			if !slices.Contains(a.states, state) {
				return fmt.Errorf("%s: what is %s cannot be: want %q", words[0], state, a.states)
			}
		}
	}
	return nil
}

func (r *run) run(ctx context.Context, verb string) (int, error) {
	cipher, err := r.keys.Cipher()
	if err == nil {
		err = database.Exists(r.database)
	}
	if err != nil {
		return 0, err
	}
	if r.db, err = database.Open(ctx, r.database, sqlstore.WithCipher(cipher)); err != nil {
		return 0, err
	}
	defer func() { _ = r.db.Close() }()
	r.db.Note(slog.Default())
	if err := r.db.UpToDate(ctx); err != nil {
		return 0, err
	}
	r.store = r.db.Webhooks()
	switch verb {
	case "list":
		return r.list(ctx)
	case "show":
		return r.show(ctx)
	case "erase":
		return r.erase(ctx)
	default:
		return r.act(ctx, verb)
	}
}
