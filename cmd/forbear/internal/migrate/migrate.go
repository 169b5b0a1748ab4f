// Package migrate is the command migrate: the schema of the database, apart from
// serve. An operator who grants serve no right to change tables runs it as another
// user; one who upgrades a fleet runs it first, or, for steps that the version before
// cannot work beside, when no process of that is left.
package migrate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/sqlstore"
)

// Command returns the command migrate. It waits while another process migrates the
// schema, so a fleet may start together. The code 1 of --status lets a deployment wait
// for the schema without reading the table.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "migrate",
		Summary: "bring the database schema up to date, or show missing steps",
		Usage:   "[--database DATABASE] [--rolling | --status]",
		About: `
Migrate applies the missing schema steps in one transaction. Serve does the same when
it starts. Run migrate to do it beforehand, or as a user with more rights: with a
schema that is up to date, serve needs no right to change it.

Most steps only add, and processes of the previous version keep working. On
PostgreSQL, serve applies no others: --status marks them with "stop the others
first", and migrate applies them unless --rolling is given. Use --rolling in a job
that runs before a fleet is upgraded process by process.

Warning: steps cannot be undone. Make a backup first. An older forbear refuses a newer
schema, unless every step that it does not know allows it.

With --status nothing is applied. The exit code is 0 when the schema is up to date, 1
when steps are missing, and 2 when there is no database.`,
		Examples: `
forbear migrate
forbear migrate --status
forbear migrate --rolling
forbear migrate --database postgres://forbear@db.example.com/forbear
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		var name string
		database.Flag(f, &name, database.Usage)
		status := f.Bool("status", false, "only show which steps are applied and which are missing")
		rolling := f.Bool("rolling", false, "refuse steps that would break processes of the previous version")
		shared := f.Bool("shared-database", false, "add forbear's tables to an application's SQLite file: see forbear serve --help")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		if *status && *rolling {
			return std.Fail("migrate: --status and --rolling exclude each other")
		}
		if *status {
			// An empty file would be there afterwards, and serve takes a file that is
			// there for the wish to deliver.
			if err := database.Exists(name); err != nil {
				return std.Fail("migrate: %v", err)
			}
		}
		db, err := database.OpenFor(ctx, name, database.Use{Shared: *shared})
		if err != nil {
			return std.Fail("migrate: %v", err)
		}
		defer func() { _ = db.Close() }()
		db.Note(slog.Default())
		list, err := db.Migrations(ctx)
		if err != nil {
			return std.Fail("migrate: %v", err)
		}
		breaking := sqlstore.Breaking(list)
		if *rolling && len(breaking) > 0 {
			show(std, list)
			return std.Fail("migrate: %s would break processes of the previous version: stop all of them, then run it without --rolling", strings.Join(sqlstore.Missing(breaking), ", "))
		}
		// All missing steps are one transaction: a migration that fails leaves the
		// schema as it was.
		if !*status {
			if _, err := db.MigrateLogged(ctx, slog.Default()); err != nil {
				return std.Fail("migrate: %v", err)
			}
			if list, err = db.Migrations(ctx); err != nil {
				return std.Fail("migrate: %v", err)
			}
		}
		show(std, list)
		if len(sqlstore.Missing(list)) > 0 {
			return cli.ExitFound
		}
		return cli.ExitOK
	}
	return c
}

// show writes one line for each step.
func show(std *cli.Streams, list []sqlstore.Migration) {
	breaking := sqlstore.Breaking(list)
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	for _, m := range list {
		when := m.Applied.Format("2006-01-02 15:04:05Z")
		switch {
		case slices.ContainsFunc(breaking, func(b sqlstore.Migration) bool { return b.Version == m.Version }):
			when = "missing: stop the others first"
		case m.Applied.IsZero():
			when = "missing"
		case m.Later:
			when += "  of a later forbear"
		}
		fmt.Fprintf(w, "%04d\t%s\t%s\n", m.Version, m.Name, when)
	}
	_ = w.Flush()
}
