package database

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func openTest(t *testing.T, name string) *DB {
	t.Helper()
	db, err := Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// What a database in use lacks is named before it is brought up to date; an
// empty one lacks nothing yet.
func TestPendingSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forbear.db")
	empty, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	pending := func(db *DB) []string {
		t.Helper()
		steps, err := db.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return steps
	}
	if steps := pending(empty); steps != nil {
		t.Errorf("an empty database lacks %v", steps)
	}
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	db := openTest(t, path)
	if steps := pending(db); steps != nil {
		t.Errorf("one that is up to date lacks %v", steps)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := raw.ExecContext(t.Context(), `DELETE FROM forbear_migrations WHERE version = 20`); err != nil {
		t.Fatal(err)
	}
	if steps := pending(db); !slices.Equal(steps, []string{"0020_identity"}) {
		t.Errorf("an older one lacks %v", steps)
	}
	// Beside a process of the former version it stays as it is.
	if err := db.UpdateBeside(t.Context(), slog.New(slog.DiscardHandler), true); err == nil || !strings.Contains(err.Error(), "0020_identity") {
		t.Errorf("beside another process: %v", err)
	}
	if steps := pending(db); len(steps) != 1 {
		t.Errorf("it lacks %v after a refusal", steps)
	}
}
