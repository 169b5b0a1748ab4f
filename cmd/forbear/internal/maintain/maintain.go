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
		Summary: "back the database up, make its file smaller, encrypt it under another key",
		Usage:   "backup FILE | reencrypt [--check] | shrink",
		About: `
Database works on the database that serve works on, beside processes that serve.

Backup writes a copy of an SQLite file as it is at one moment, with what waits
and what is in flight. It takes no key: what is encrypted stays so. The copy is
a database: serve starts on it. A PostgreSQL has pg_dump.

Shrink rewrites an SQLite file without its free space. A file that this version
has made gives space back by itself, one of before does so from then on. No
process can write meanwhile, so stop serve first when the file is large; there
has to be room for a copy.

Reencrypt writes anew what is not encrypted under the first of the keys: what
is under another one, and what was written before there was a key. It goes on
where it was ended, and counts at the end what is encrypted under which key;
--check only counts. The exit code is 1 while anything is not under the first
key. When nothing is left, the database is marked: what is not encrypted for its
row is refused from then on, so all processes must have a key first. To rotate a key without a pause:

  1. give all processes both keys, the old one first;
  2. when all have it, give them both with the new one first;
  3. forbear database reencrypt, with both, the new one first;
  4. when it exits with 0, take the old key from all processes. Exports of dead
     letters are not rewritten: keep the key for as long as those.`,
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
	f.BoolVar(&m.check, "check", false, "reencrypt: only count what is encrypted under which key")
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
		err = fmt.Errorf("%w: pg_dump makes a copy of it, see docs/guides/backup.md", err)
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
