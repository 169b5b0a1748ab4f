package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// A schema that is up to date is only read: neither another's lock on it nor a
// missing right is in the way.
func TestCurrentSchemaIsOnlyRead(t *testing.T) {
	for _, c := range []struct{ name, driver, database, empty, lock, readOnly string }{
		{"SQLite", "sqlite", file(t), filepath.Join(t.TempDir(), "empty.db"), `BEGIN IMMEDIATE`, "?_pragma=query_only(1)"},
		{"PostgreSQL", "pgx", pgtest.Database(t), pgtest.Shared(t).Database(t), `BEGIN; LOCK TABLE forbear_migrations IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_advisory_xact_lock(x'666f72626561'::bigint)`, "&default_transaction_read_only=on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			open(t, c.database)
			raw := pool(t, c.driver, c.database)
			if _, err := raw.ExecContext(t.Context(), c.lock); err != nil {
				t.Fatal(err)
			}
			for _, place := range []string{c.database, c.database + c.readOnly} {
				db, end, err := connect(t.Context(), place)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if steps, err := db.Migrate(ctx); err != nil || len(steps) > 0 {
					t.Errorf("%s: applied %v, %v", place, steps, err)
				}
				if steps, err := db.Migrations(ctx); err != nil || len(sqlstore.Missing(steps)) > 0 {
					t.Errorf("%s: %v, %v", place, steps, err)
				}
				end()
			}
			// What may not be changed, and lacks steps, is refused with their names.
			db, end, err := connect(t.Context(), c.empty+c.readOnly)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			if _, err := db.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrRights) || !strings.Contains(err.Error(), "0001_delivery, 0010_idempotency") {
				t.Errorf("without a right to change it: %v", err)
			}
		})
	}
}

// pool opens a pool of one connection that is not forbear's.
func pool(t *testing.T, driver, place string) *sql.DB {
	t.Helper()
	if driver == "sqlite" {
		place, _ = sqlstore.SQLiteNames(place)
	}
	raw, err := sql.Open(driver, place)
	if err != nil {
		t.Fatal(err)
	}
	raw.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = raw.Close() })
	return raw
}
