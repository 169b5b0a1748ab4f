// Package keys is the command keys: what an operator does with idempotency records
// whose outcome is unknown. Nothing resolves them by itself: a guess would do
// the work twice or not at all.
package keys

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/idempotency"
)

// Command returns the command keys.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "keys",
		Summary: "find idempotency records, and settle those whose outcome is unknown",
		Usage:   "list|show|settle [FLAGS] [SCOPE DIGEST]",
		About: `
Keys works on serve's database, or on the Redis of a service that keeps its records
there. A record is held when its outcome is unknown: the process died, or the service
behind the gateway broke off. Its duplicates do not run until you settle it. Check in
the service first whether the work was done.

List shows held records, or those of another --state. Show takes a customer's --key
and finds its records in all scopes, or in one --scope. The key itself is never stored
or shown; "--key -" reads it from standard input, which keeps it out of the shell's
history.

Settle takes the scope and digest from the list, or --key, and --why. With --done
STATUS, duplicates get a response of that status, with --header lines and a --body.
With --undone, the next duplicate runs. --fence protects a record that has run again
in the meantime. The audit trail records your name; on Redis, the record does.

For grpcretry, the status becomes the matching code, and the body its text. A reply
needs the Content-Type "application/x-protobuf; messagetype=NAME" and the message in
binary form. An event has no response: --done 200 acknowledges it.

Exit code 1: nothing was found, or the record is not held.`,
		Examples: `
forbear keys list
forbear keys list --database redis://127.0.0.1:6379/0 -o json
forbear keys show --key 0b8a6a0e-3c5e-4f6b-9f5e-2d8f0e6c7a11
forbear keys settle --done 201 --header 'Content-Type: application/json' --body paid.json --why "in the ledger" tenant-7 0eYwzDnqGTsVQbBPqvL7dV0RDm2EJZT3yIr3P6V1yF4
forbear keys settle --undone --why "not in the ledger" --scope tenant-7 --key 0b8a6a0e-3c5e-4f6b-9f5e-2d8f0e6c7a11
`,
	}, setup)
}

// keys is one run of the command.
type keys struct {
	*verb.Run
	db *keyStore

	filter idempotency.Filter // of list; for the others, what is looked for
	named  naming
	state  string // as it was given; checkList puts it into the filter
	word   word   // of settle
}

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	k := &keys{Run: r}
	var name string
	database.Flag(f, &name, "an SQLite `file`, a postgres:// or a redis:// URL (also from FORBEAR_DATABASE)")
	prefix := f.String("prefix", "", "on Redis: the `prefix` of the service's records")
	f.StringVar(&k.state, "state", string(idempotency.Held), "list: only in this `state`: held, started, completed, released or all")
	f.StringVar(&k.named.scope, "scope", "", "only of this `scope`, as list shows it")
	f.IntVar(&k.filter.Limit, "limit", 100, "list, show: at most this `number`, up to 1000")
	r.FormatFlag(f, "list, show: output format: `text or json`")
	f.StringVar(&k.named.key, "key", "", "show, settle: the customer's `key`; - reads it from standard input")
	f.StringVar(&k.named.source, "source", "", "show, settle: the key is the id of an event of this `source`")
	k.word.flags(f)
	r.ActorFlag(f, "settle: your `name`, for the audit")
	r.FlagsFirst = true // a digest may begin with a dash
	r.Open = func(ctx context.Context) (err error) {
		k.db, err = openKeyStore(ctx, name, *prefix)
		return err
	}
	r.Close = func() error { return k.db.close() }
	return []verb.Verb{
		{Name: "list", Check: k.checkList, Do: k.list},
		{Name: "show", Most: 2, Check: k.checkShow, Do: k.show},
		{Name: "settle", Most: 2, Check: k.checkSettle, Do: k.settle},
	}
}

func (k *keys) checkList() error {
	switch s := idempotency.State(k.state); s {
	case "all": // no filter at all
	case idempotency.Held, idempotency.Started, idempotency.Completed, idempotency.Released:
		k.filter.State = s
	default:
		return fmt.Errorf("unknown state %q: want held, started, completed, released or all", k.state)
	}
	if k.named.key != "" {
		return errors.New("list takes no --key: use show")
	}
	k.filter.Scope = idempotency.ScopeOf(k.named.scope)
	return nil
}

func (k *keys) checkShow() error { return k.named.into(&k.filter, k.Operands, k.In) }

func (k *keys) checkSettle() error {
	if k.named.key == "-" && k.word.body == "-" {
		return errors.New("only one of --key and --body can be read from standard input")
	}
	if err := k.checkShow(); err != nil {
		return err
	}
	return k.word.read(k.In)
}
