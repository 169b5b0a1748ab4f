// Package maintain is the command database: what an operator does to the database as a
// whole, beside the processes that work on it.
package maintain

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
)

// Command returns the command database.
func Command() *cli.Command {
	return verb.Command(cli.Command{
		Name:    "database",
		Summary: "back up, shrink or re-encrypt the database",
		Usage:   "backup FILE | reencrypt [--check] | shrink",
		About: `
Database works on serve's database while processes use it.

Backup writes a consistent copy of an SQLite file, on which serve can start. It needs no
key: encrypted data stays encrypted. For PostgreSQL, use pg_dump.

Shrink rewrites an SQLite file without its free space, and makes it release free space
by itself from then on, as new files do. No process can write meanwhile: stop serve
first when the file is large. The disk needs room for a copy.

Reencrypt encrypts all rows under the first key. It continues where an earlier run
stopped, and prints how many rows are under which key; --check only counts. The exit
code is 1 until every row is under the first key. From then on the database refuses
values that are not encrypted, so give all processes a key first. To rotate a key
without a pause:

  1. give all processes both keys, the old one first;
  2. when all have both, give them the new one first;
  3. run forbear database reencrypt with both, the new one first;
  4. when it exits with 0, remove the old key from all processes. Exports of dead
     letters are not rewritten: keep the key for as long as you keep them.`,
		Examples: `
forbear database backup forbear-2026-03-01.db
forbear database shrink --database /var/lib/forbear/forbear.db
forbear database reencrypt --encryption-key-file new.key --encryption-key-file old.key
forbear database reencrypt --check --encryption-key-file new.key
`,
	}, setup)
}

// maintenance is one run of the command.
type maintenance struct {
	*verb.Run
	db    *verb.Database
	check bool
}

func setup(r *verb.Run, f *flag.FlagSet) []verb.Verb {
	m := &maintenance{Run: r, db: r.Database(f)}
	f.BoolVar(&m.check, "check", false, "reencrypt: only count the rows under each key")
	open := r.Open
	r.Open, r.Close = nil, nil // the other two work on the file
	return []verb.Verb{
		{Name: "backup", Operand: "the name of one new file", Do: m.backup},
		{Name: "reencrypt", Do: func(ctx context.Context) error {
			if err := open(ctx); err != nil {
				return err
			}
			defer func() { _ = m.db.Close() }()
			return m.reencrypt(ctx)
		}},
		{Name: "shrink", Do: m.shrink},
	}
}

// backup copies the file.
func (m *maintenance) backup(ctx context.Context) error {
	err := database.Backup(ctx, m.db.Name, m.ID)
	if errors.Is(err, database.ErrServer) {
		err = fmt.Errorf("%w: use pg_dump, see docs/guides/backup.md", err)
	}
	return err
}

// shrink rewrites the file.
func (m *maintenance) shrink(ctx context.Context) error {
	before, after, err := database.Shrink(ctx, m.db.Name)
	if err == nil {
		fmt.Fprintf(m.Out, "%s: %d bytes before, %d now\n", m.db.Name, before, after)
	}
	return err
}
