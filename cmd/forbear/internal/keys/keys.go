// Package keys is the command keys: what an operator does with idempotency records
// whose outcome is unknown. Nothing resolves them by itself: a guess would do
// the work twice or not at all.
package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
)

// Command returns the command keys.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "keys",
		Summary: "list idempotency records, and settle those whose outcome is unknown",
		Usage:   "list|settle [FLAGS] [SCOPE KEY]",
		About: `
Keys works on the database that serve works on, or on the Redis of a service
that keeps its records there. A record is held when its work
may have happened and no one knows: the process died, or the service behind the
gateway broke off. No duplicate of it runs until you have settled it. Look into
the books of the service first.

List shows the held records, or those of another --state: started, completed,
released or all. Settle takes the scope and the key's digest from the list, and
--why; --done STATUS gives duplicates an empty response of that status from now
on, --undone lets the next one run. It is written to the audit trail with your
name; on Redis, which has none, into the record.

Exit code 1 means that nothing was found, or that the record is not held.`,
		Examples: `
forbear keys list
forbear keys list --database redis://127.0.0.1:6379/0 -o json
forbear keys settle --done 201 --why "in the ledger" tenant-7 0eYwzDnqGTsVQbBPqvL7dV0RDm2EJZT3yIr3P6V1yF4
forbear keys settle --undone --why "not in the ledger" tenant-7 0eYwzDnqGTsVQbBPqvL7dV0RDm2EJZT3yIr3P6V1yF4
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		// A key's digest may begin with a dash: behind the first operand
		// there are no flags.
		verb, args := cli.Verb(args) // without one, check says so
		f := c.Flags()
		// No default prefix is offered for SQL, which has none.
		k := &keyring{std: std}
		var name string
		database.Flag(f, &name, "an SQLite `file`, a postgres:// or a redis:// URL (also from FORBEAR_DATABASE)")
		prefix := f.String("prefix", "", "on Redis: what the `names` of the service's records begin with")
		f.StringVar(&k.state, "state", string(idempotency.Held), "list: records in this `state`: held, started, completed, released or all")
		f.StringVar(&k.filter.Scope, "scope", "", "list: records of this `principal`")
		f.IntVar(&k.filter.Limit, "limit", 100, "list: at most this `many`, up to 1000")
		f.StringVar(&k.format, "o", "text", "list: output format: `text or json`")
		f.IntVar(&k.done, "done", 0, "settle: it happened; duplicates get this `status`")
		f.BoolVar(&k.undone, "undone", false, "settle: it did not happen; the next attempt runs")
		f.StringVar(&k.why, "why", "", "settle: the `reason`")
		cli.ActorFlag(f, &k.who, "settle: your `name`, for the audit")
		if code, done := c.Parse(std, f, args, 2); done {
			return code
		}
		if code, ok := c.Knows(std, verb); verb != "" && !ok {
			return code
		}
		// The list shows the digest of a key, never the key: a key may be
		// worth as much as the request.
		k.id = idempotency.ID{Scope: f.Arg(0), Key: f.Arg(1)}
		if err := k.check(verb); err != nil {
			return std.Fail("keys: %v (see forbear keys --help)", err)
		}
		// Nothing is opened before the whole command line has been
		// checked.
		db, err := openKeyStore(ctx, name, *prefix)
		if err != nil {
			return std.Fail("keys: %v", err)
		}
		defer func() { _ = db.close() }()
		if verb == "list" {
			return k.list(ctx, db)
		}
		return k.settle(ctx, db)
	}
	return c
}

// keyring is one run of the command, with the flags of both verbs. It is
// checked as a whole before a store is opened.
type keyring struct {
	std *cli.Streams

	// Of list.
	filter idempotency.Filter
	state  string // as it was given; check puts it into the filter
	format string // text or json

	// Of settle.
	id       idempotency.ID
	done     int  // the status that duplicates get, or 0
	undone   bool // the next attempt runs
	who, why string
}

// check says what is wrong with the command line, before a database is
// opened. A status that is not final, such as 503, is refused: duplicates
// would receive it for good, and take it for a reason to retry.
func (k *keyring) check(verb string) error {
	switch verb {
	case "list":
		if k.format != "text" && k.format != "json" {
			return fmt.Errorf("unknown format %q: want text or json", k.format)
		}
		switch s := idempotency.State(k.state); s {
		// No filter at all: the held records come among the others.
		case "all":
		case idempotency.Held, idempotency.Started, idempotency.Completed, idempotency.Released:
			k.filter.State = s
		default:
			return fmt.Errorf("unknown state %q: want held, started, completed, released or all", k.state)
		}
		return nil
	case "settle":
		switch {
		case k.id.Scope == "" || k.id.Key == "":
			return errors.New("settle needs the scope and the key's digest")
		// Exactly one of the two, and no default: either can do harm when
		// it is wrong.
		case (k.done == 0) != k.undone:
			return errors.New("settle needs either --done or --undone")
		case k.done != 0 && (k.done < 200 || k.done > 499):
			return fmt.Errorf("status %d is not final: want 200 to 499", k.done)
		case k.why == "":
			return errors.New("settle needs --why")
		}
		return nil
	default:
		return errors.New("list or settle?")
	}
}

// listed is one line of a list in JSON. Of a response it has the status
// alone: the body belongs to the caller, and an operator needs none of it to
// decide.
//
// The field names are a format that scripts read.
type listed struct {
	Scope     string            `json:"scope"`
	Key       string            `json:"key"`
	State     idempotency.State `json:"state"`
	Operation string            `json:"operation"`
	Attempt   int               `json:"attempt"`
	Created   time.Time         `json:"created"`
	Expires   time.Time         `json:"expires"`
	Status    int               `json:"status,omitempty"`
	Note      string            `json:"note,omitempty"`
}

// list writes the records that the filter chooses. Scope, operation and note
// come from callers and are quoted: they cannot steer the terminal. An empty
// list is exit code 1, as with grep.
func (k *keyring) list(ctx context.Context, db *keyStore) int {
	records, err := db.records.List(ctx, k.filter)
	if err != nil {
		return k.std.Fail("keys: %v", err)
	}
	code := cli.ExitOK
	if len(records) == 0 {
		code = cli.ExitFound
	}
	if k.format == "json" {
		// One record a line, so that a long list can be read while it is
		// written.
		enc := json.NewEncoder(k.std.Out)
		for _, r := range records {
			l := listed{r.ID.Scope, r.ID.Key, r.State, r.Operation, r.Attempt, r.Created, r.Expires, 0, r.Note}
			// Only completed records have a response; a status of 0 is
			// left out.
			if r.Response != nil {
				l.Status = r.Response.Status
			}
			if err := enc.Encode(l); err != nil {
				return k.std.Fail("keys: %v", err)
			}
		}
		return code
	}
	// The key is a digest in base64url and needs no quotes.
	w := tabwriter.NewWriter(k.std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCOPE\tKEY\tSTATE\tSINCE\tOPERATION\tNOTE")
	for _, r := range records {
		fmt.Fprintf(w, "%q\t%s\t%s\t%s\t%q\t%q\n", r.ID.Scope, r.ID.Key, r.State, r.Created.Format(time.RFC3339), r.Operation, r.Note)
	}
	// A closed pipe is the reader's choice, as with head.
	_ = w.Flush()
	return code
}

// settle resolves a held record as done or as undone. The audit entry comes
// first: a record that was resolved without a trace must not exist, while an
// entry for a record that stayed held is noticed, because the command fails.
func (k *keyring) settle(ctx context.Context, db *keyStore) int {
	res := idempotency.Resolution{By: k.who, Why: k.why}
	detail := "undone: " + k.why
	// A status alone is stored: no one knows the body that was lost.
	if k.done != 0 {
		res.Response = &idempotency.Response{Status: k.done}
		detail = fmt.Sprintf("done, %d: %s", k.done, k.why)
	}
	if err := db.audit(ctx, deadletter.Entry{Who: k.who, Action: "settle", Target: k.id.Scope + " " + k.id.Key, Detail: detail}); err != nil {
		return k.std.Fail("keys: %v", err)
	}
	err := db.records.Resolve(ctx, k.id, res)
	switch {
	// Another operator may have been faster: a negative result, not a
	// fault.
	case errors.Is(err, idempotency.ErrNotFound), errors.Is(err, idempotency.ErrNotHeld):
		fmt.Fprintln(k.std.Err, "forbear: keys:", err)
		return cli.ExitFound
	case err != nil:
		return k.std.Fail("keys: %v", err)
	}
	fmt.Fprintln(k.std.Out, "settled")
	return cli.ExitOK
}
