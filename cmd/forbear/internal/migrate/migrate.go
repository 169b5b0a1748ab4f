// Package migrate is the command migrate: the schema of the database, apart from
// serve. An operator who grants serve no right to change tables runs it as another
// user; one who upgrades a fleet runs it when no process of the old version is
// left.
package migrate

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
)

// Command returns the command migrate. It waits for the lock that the schema has
// while another process migrates it, so a fleet may start together. An older binary
// refuses a newer schema; there is no way back down, hence the advice to look at
// --status first.
//
// The code 1 of --status lets a deployment wait for the schema without reading the
// table.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "migrate",
		Summary: "bring the database's schema up to date, or tell how far it is",
		Usage:   "[--database DATABASE] [--status]",
		About: `
Migrate applies the steps of the schema that the database does not have yet,
all of them or none. Serve does the same when it starts; migrate is for those
who want to do it beforehand, or with another user: serve needs no right to
change a schema that is up to date. Several may run at once.

There is no way down: make a backup before. An older forbear refuses a newer
schema, and names what is newer.

With --status nothing is applied: the exit code is 0 when the schema is up to
date and 1 when steps are missing.`,
		Examples: `
forbear migrate
forbear migrate --status
forbear migrate --database postgres://forbear@db.example.com/forbear
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		var name string
		database.Flag(f, &name, database.Usage)
		status := f.Bool("status", false, "only tell which steps are applied")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		db, err := database.Open(ctx, name)
		if err != nil {
			return std.Fail("migrate: %v", err)
		}
		defer func() { _ = db.Close() }()
		db.Note(slog.Default())
		// All missing steps are one transaction: a migration that fails leaves the
		// schema as it was.
		if !*status {
			if _, err := db.Migrate(ctx); err != nil {
				return std.Fail("migrate: %v", err)
			}
		}
		list, err := db.Migrations(ctx)
		if err != nil {
			return std.Fail("migrate: %v", err)
		}
		// Without --status none is missing here, and the code is 0.
		code := cli.ExitOK
		for _, m := range list {
			when := "missing"
			if !m.Applied.IsZero() {
				when = m.Applied.Format("2006-01-02 15:04:05Z")
			} else {
				code = cli.ExitFound
			}
			fmt.Fprintf(std.Out, "%04d  %-20s %s\n", m.Version, m.Name, when)
		}
		return code
	}
	return c
}
