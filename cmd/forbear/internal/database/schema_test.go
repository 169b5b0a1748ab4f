package database

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/pgtest"
)

// A step that processes of the version before cannot work beside is applied to no
// database on which they may be at work, and named; by a file's only process it is. An
// empty database has no such processes.
func TestUpdate(t *testing.T) {
	server := pgtest.Start(t)
	quiet := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		name    string
		server  bool
		beside  bool // a process hands over
		lacks   string
		refused string // what the refusal says; "" for none
	}{
		{"a file of its own", false, false, `DROP TABLE forbear_holds; DELETE FROM forbear_migrations WHERE version = 120`, ""},
		{"a file of the process that hands over", false, true, `DROP TABLE forbear_holds; DELETE FROM forbear_migrations WHERE version = 120`, "0120_holds, beside which the process that hands over"},
		{"a server", true, false, `DROP TABLE forbear_holds; DELETE FROM forbear_migrations WHERE version = 120`, "0120_holds, beside which processes of the version before could not work: run forbear migrate --database postgres://"},
		{"added to a file", false, true, `ALTER TABLE forbear_migrations DROP COLUMN beside; DELETE FROM forbear_migrations WHERE version = 150`, ""},
		{"added to a server", true, false, `ALTER TABLE forbear_migrations DROP COLUMN beside; DELETE FROM forbear_migrations WHERE version = 150`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "forbear.db")
			if c.server {
				place = server.Database(t)
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
