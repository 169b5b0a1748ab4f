// Package token is the command token: who may call the delivery API. It works on the
// database, as dlq does: the first token cannot be asked of an API that demands one.
package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/sqlstore"
)

// Command returns the command token.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "token",
		Summary: "make, list and revoke tokens of the delivery API",
		Usage:   "create NAME | list | revoke NAME",
		About: `
Token works on the database that serve works on. From the first token on, the
delivery API demands one: as "Authorization: Bearer TOKEN". Create prints the
token, once; the database has only a digest of it. The audit trail names the
token for what is done with it. A token that is revoked ends within five seconds.

--scope admin may do everything. --scope application, with --application, may
send messages for one application, and look after them and its endpoints.
--scope read-only may look, and sees no payloads; with --application, it sees
what is of that application.`,
		Examples: `
forbear token create deploy --scope admin --expires 30d
forbear token create acme-app --scope application --application acme
forbear token list -o json
forbear token revoke deploy
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		r := &run{std: std}
		var name string
		database.Flag(f, &name, database.Usage)
		f.StringVar((*string)(&r.asked.Scope), "scope", string(sqlstore.ScopeReadOnly), "create: what it is good `for`: admin, application or read-only")
		f.StringVar(&r.asked.Application, "application", "", "create: it is for what is of this application alone, by its `id`")
		f.Func("expires", "create: it ends after this `time`, from 1m to 730d (default 90d)", func(text string) (err error) {
			r.asked.ExpiresIn, err = policyfile.ParseDuration(text)
			return err
		})
		f.StringVar(&r.format, "o", "text", "create, list: output format: `text or json`")
		cli.ActorFlag(f, &r.who, "your `name`, for the audit")
		words, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		if err := r.check(words); err != nil {
			return std.Fail("token: %v (see forbear token --help)", err)
		}
		db, err := database.Open(ctx, name)
		if err != nil {
			return std.Fail("token: %v", err)
		}
		defer func() { _ = db.Close() }()
		if code, err = r.do(ctx, db, words); err != nil {
			return std.Fail("token: %v", err)
		}
		return code
	}
	return c
}

// run is one run of the command.
type run struct {
	std    *cli.Streams
	asked  durable.NewToken
	format string
	who    string
}

// check says what is wrong with the command line before a database is opened.
func (r *run) check(words []string) error {
	want := map[string]int{"create": 2, "list": 1, "revoke": 2}
	switch {
	case len(words) == 0:
		return errors.New("create, list or revoke?")
	case len(words) != want[words[0]] && want[words[0]] == 2:
		return fmt.Errorf("%s wants one name", words[0])
	case len(words) != want[words[0]]:
		return fmt.Errorf("%s takes no %q", words[0], words[1])
	case r.format != "text" && r.format != "json":
		return fmt.Errorf("unknown format %q: want text or json", r.format)
	case words[0] == "create":
		r.asked.Name = words[1]
		return r.asked.Check()
	}
	return nil
}

// do does what the verb says. The schema is brought up to date first: the token may be
// the first thing in the database.
func (r *run) do(ctx context.Context, db *database.DB, words []string) (int, error) {
	if err := db.UpToDate(ctx); err != nil {
		return 0, err
	}
	switch words[0] {
	case "create":
		return cli.ExitOK, r.create(ctx, db)
	case "list":
		return cli.ExitOK, r.list(ctx, db)
	}
	err := db.Tokens().Revoke(ctx, words[1], r.who)
	if errors.Is(err, sqlstore.ErrTokenNotFound) {
		fmt.Fprintln(r.std.Err, "token:", err)
		return cli.ExitFound, nil
	}
	return cli.ExitOK, err
}

// create prints a new token: alone, for a pipe into a file.
func (r *run) create(ctx context.Context, db *database.DB) error {
	made, err := r.asked.Create(ctx, db.DB, r.who)
	if err != nil {
		return err
	}
	if r.format == "json" {
		return json.NewEncoder(r.std.Out).Encode(made)
	}
	_, err = fmt.Fprintln(r.std.Out, made.Text)
	return err
}

// listed is how many tokens are read at once.
const listed = 100

// list prints all tokens, without what they are.
func (r *run) list(ctx context.Context, db *database.DB) error {
	for after := ""; ; {
		list, err := db.Tokens().List(ctx, after, listed)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, t := range list {
			if err := r.print(t); err != nil {
				return err
			}
			after = t.Name
		}
	}
}

// print prints one token, without what it is.
func (r *run) print(t sqlstore.Token) error {
	if r.format == "json" {
		return json.NewEncoder(r.std.Out).Encode(t)
	}
	ends := "until " + t.Expires.Format(time.DateOnly)
	if time.Now().After(t.Expires) {
		ends = "expired " + t.Expires.Format(time.DateOnly)
	}
	_, err := fmt.Fprintf(r.std.Out, "%-24s %-12s %-24s %s\n", t.Name, t.Scope, t.Application, ends)
	return err
}
