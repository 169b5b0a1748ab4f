package verb

import (
	"context"
	"flag"
	"log/slog"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
)

// Database is the database of serve, for commands that work on it themselves: beside
// a serve, or while none runs.
type Database struct {
	*database.DB

	Name   string          // as the flag has it
	Cipher sqlstore.Cipher // nil without a key file
	keys   database.KeyFiles
	exists bool // it is not made
}

// Database registers the flags of serve's database, which the verbs find open.
func (r *Run) Database(f *flag.FlagSet) *Database {
	d := r.NewDatabase(f)
	d.exists = true
	database.KeyFlag(f, &d.keys, "serve's encryption key `file`")
	return d
}

// NewDatabase does so for verbs that make the database when there is none.
func (r *Run) NewDatabase(f *flag.FlagSet) *Database {
	d := &Database{}
	database.Flag(f, &d.Name, database.Usage)
	r.Open, r.Close = d.open, func() error { return d.Close() }
	return d
}

// open opens a database that has the schema that this forbear knows. A key is not
// needed: without it payloads cannot be shown.
func (d *Database) open(ctx context.Context) (err error) {
	if d.Cipher, err = d.keys.Cipher(); err != nil {
		return err
	}
	if d.exists {
		if err := database.Exists(d.Name); err != nil {
			return err
		}
	}
	if d.DB, err = database.Open(ctx, d.Name, sqlstore.WithCipher(d.Cipher)); err != nil {
		return err
	}
	d.Note(slog.Default())
	if err := d.UpToDate(ctx); err != nil {
		_ = d.Close()
		return err
	}
	return nil
}

// Reveal writes to the audit trail before anything is revealed: what cannot be recorded
// is not shown.
func (d *Database) Reveal(ctx context.Context, r *Run, target, detail string) error {
	return d.DeadLetters().Audit(ctx, queue.Entry{Who: r.Actor, Action: "reveal", Target: target, Detail: detail})
}
