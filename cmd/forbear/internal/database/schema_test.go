package database

import (
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, nil)) }

// A step that processes of the version before cannot work beside is applied to no
// database on which they may be at work, and named; by a file's only process it is. An
// empty database has no such processes.
func TestUpdate(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		name    string
		server  bool
		beside  bool // a process hands over
		lacks   string
		refused string // what the refusal says; "" for none
	}{
		{"a file of its own", false, false, `DROP TABLE forbear_holds; DELETE FROM forbear_migrations WHERE version = 120`, ""},
		{"a file of the process that hands over", false, true, `DROP TABLE forbear_holds; DELETE FROM forbear_migrations WHERE version = 120`, "0120_holds, which would break the process that hands over"},
		{"a server", true, false, `DROP TABLE forbear_holds; DELETE FROM forbear_migrations WHERE version = 120`, "0120_holds, which would break processes of the previous version: stop all of them, then run forbear migrate --database postgres://"},
		{"added to a file", false, true, `ALTER TABLE forbear_migrations DROP COLUMN beside; DELETE FROM forbear_migrations WHERE version = 150`, ""},
		{"added to a server", true, false, `ALTER TABLE forbear_migrations DROP COLUMN beside; DELETE FROM forbear_migrations WHERE version = 150`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "forbear.db")
			if c.server {
				place = pgtest.Database(t)
			}
			db, err := Open(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if err := db.Update(t.Context(), quiet, true); err != nil {
				t.Fatalf("an empty database: %v", err)
			}
			driver := "sqlite"
			if c.server {
				driver = "pgx"
			}
			raw, err := sql.Open(driver, place)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = raw.Close() }()
			if _, err := raw.ExecContext(t.Context(), c.lacks); err != nil {
				t.Fatal(err)
			}
			if err := db.UpToDate(t.Context()); err == nil || !strings.Contains(err.Error(), "forbear migrate") {
				t.Errorf("a command that only reads: %v", err)
			}
			err = db.Update(t.Context(), quiet, c.beside)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
			if err := db.UpToDate(t.Context()); (err == nil) != (c.refused == "") {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

// While a migration waits, the log says for what, and not with each try.
func TestUpdateSaysWhatItWaitsFor(t *testing.T) {
	place := pgtest.Database(t)
	raw, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	tx, err := raw.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `SELECT pg_advisory_xact_lock(112628846454113)`); err != nil { // the store's
		t.Fatal(err)
	}
	db, err := Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	said := make(lines, 100)
	ended := make(chan error, 1)
	go func() { ended <- db.Update(t.Context(), slog.New(slog.NewTextHandler(said, nil)), false) }()
	select {
	case line := <-said:
		if !strings.Contains(line, "trying again") || !strings.Contains(line, "another process is changing the schema") {
			t.Errorf("the log says %s", line)
		}
	case err := <-ended:
		t.Fatalf("it has not waited: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || len(said) > 0 {
		t.Errorf("%v, and %d more lines in the log", err, len(said))
	}
}

// lines are those of a log.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}
