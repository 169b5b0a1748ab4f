// Package token is the command token: who may call the delivery API. It works on the
// database, as dlq does: the first token cannot be asked of an API that demands one.
package token

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/sqlstore"
)

// Command returns the command token.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "token",
		Summary: "make, list and revoke tokens of the delivery API",
		Usage:   "create NAME | list | revoke NAME",
		About: `
Token works on serve's database. From the first token on, the delivery API requires
one, as "Authorization: Bearer TOKEN". Create prints the token once; the database
has only its digest. The audit trail names the token that was used. A revoked token
stops working within five seconds.

  admin         may do everything
  application   may send messages for one application, and manage it and its endpoints
  read-only     may read, without payloads; with --application, only of that application`,
		Examples: `
forbear token create deploy --scope admin --expires 30d
forbear token create acme-app --scope application --application acme
forbear token list -o json
forbear token revoke deploy
`,
	}, setup)
}

// tokens is one run of the command.
type tokens struct {
	*verb.Run

	db    *verb.Database
	asked durable.NewToken
}

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	t := &tokens{Run: r, db: r.NewDatabase(f)} // the token may be the first thing in it
	f.StringVar((*string)(&t.asked.Scope), "scope", string(sqlstore.ScopeReadOnly), "create: its `scope`: admin, application or read-only")
	f.StringVar(&t.asked.Application, "application", "", "create: only for the application with this `id`")
	f.Func("expires", "create: expires after this `time`, 1m to 730d (default 90d)", func(text string) (err error) {
		t.asked.ExpiresIn, err = policyfile.ParseDuration(text)
		return err
	})
	r.FormatFlag(f, "create, list: output format: `text or json`")
	r.ActorFlag(f, "your `name`, for the audit")
	check := func() error {
		t.asked.Name = r.ID
		return t.asked.Check()
	}
	return []verb.Verb{
		{Name: "create", Operand: "one name", Check: check, Do: t.create},
		{Name: "list", Do: t.list},
		{Name: "revoke", Operand: "one name", Do: t.revoke},
	}
}

// revoke ends a token, and says what it means that it was the last one.
func (t *tokens) revoke(ctx context.Context) error {
	if err := t.db.Tokens().Revoke(ctx, t.ID, t.Actor); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s is revoked: it stops working within five seconds\n", cli.Printable(t.ID))
	some, err := t.db.Tokens().Any(ctx)
	if err == nil && !some {
		fmt.Fprintln(t.Err, "forbear: token: warning: no token is left: a running serve refuses all calls of the API, and one that starts without --api-token-file requires no token on loopback; make another with forbear token create NAME")
	}
	return err
}

// create prints a new token: alone, for a pipe into a file.
func (t *tokens) create(ctx context.Context) error {
	made, err := t.asked.Create(ctx, t.db.DB.DB, t.Actor)
	if err == nil {
		t.Say(made, "%s", made.Text)
	}
	return err
}

// listed is how many tokens are read at once.
const listed = 100

// list prints all tokens, without what they are.
func (t *tokens) list(ctx context.Context) error {
	for after := ""; ; {
		list, err := t.db.Tokens().List(ctx, after, listed)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, token := range list {
			ends := "until "
			if time.Now().After(token.Expires) {
				ends = "expired "
			}
			t.Say(token, "%-24s %-12s %-24s %s", token.Name, token.Scope, token.Application, ends+token.Expires.Format(time.DateOnly))
			after = token.Name
		}
	}
}
