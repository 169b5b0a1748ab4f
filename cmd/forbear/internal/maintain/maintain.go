// Package maintain is the command database: what an operator does to the database as a
// whole, beside the processes that work on it.
package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/sqlstore"
)

// Command returns the command database.
func Command() *cli.Command {
	c := &cli.Command{
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
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		m := &maintenance{std: std}
		database.Flag(f, &m.name, database.Usage)
		database.KeyFlag(f, &m.keys, "the `file` with the key that serve encrypts under")
		f.BoolVar(&m.check, "check", false, "reencrypt: only count what is encrypted under which key")
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case len(words) == 0:
			return std.Fail("database: what shall be done? want %s (see forbear database --help)", strings.Join(c.Verbs(), ", "))
		}
		code, err := verbs[words[0]](m, ctx, words[1:])
		if err != nil {
			return std.Fail("database: %v", err)
		}
		return code
	}
	return c
}

// maintenance is one run of the command.
type maintenance struct {
	std   *cli.Streams
	name  string // of the database
	keys  database.KeyFiles
	check bool
	db    *database.DB
}

// verbs are what Usage lists, by name. Each returns the exit code.
var verbs = map[string]func(m *maintenance, ctx context.Context, operands []string) (int, error){
	"backup":    (*maintenance).backup,
	"reencrypt": (*maintenance).reencrypt,
	"shrink":    (*maintenance).shrink,
}

// none refuses operands.
func none(verb string, operands []string) error {
	if len(operands) > 0 {
		return fmt.Errorf("%s: unexpected argument %q", verb, operands[0])
	}
	return nil
}

// backup copies the file.
func (m *maintenance) backup(ctx context.Context, operands []string) (int, error) {
	if len(operands) != 1 {
		return 0, errors.New("backup wants the name of one new file")
	}
	err := database.Backup(ctx, m.name, operands[0])
	if errors.Is(err, database.ErrServer) {
		err = fmt.Errorf("%w: pg_dump makes a copy of it, see docs/guides/backup.md", err)
	}
	return cli.ExitOK, err
}

// shrink rewrites the file.
func (m *maintenance) shrink(ctx context.Context, operands []string) (int, error) {
	if err := none("shrink", operands); err != nil {
		return 0, err
	}
	before, after, err := database.Shrink(ctx, m.name)
	if err == nil {
		fmt.Fprintf(m.std.Out, "%s: %d bytes before, %d now\n", m.name, before, after)
	}
	return cli.ExitOK, err
}

// open opens the database, which is there and has the schema that this forbear knows.
func (m *maintenance) open(ctx context.Context) error {
	c, err := m.keys.Cipher()
	if err != nil {
		return err
	}
	if err := database.Exists(m.name); err != nil {
		return err
	}
	if m.db, err = database.Open(ctx, m.name, sqlstore.WithCipher(c)); err != nil {
		return err
	}
	m.db.Note(slog.Default())
	if err := m.db.UpToDate(ctx); err != nil {
		return errors.Join(err, m.db.Close())
	}
	return nil
}
