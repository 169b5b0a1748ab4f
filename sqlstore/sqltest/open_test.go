package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

// A file's pools are its database's: they are closed with it, and a file that cannot be
// opened is named.
func TestOpenSQLite(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "forbear.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Error(err)
	}
	if list, err := db.Migrations(t.Context()); err == nil {
		t.Errorf("a closed database has %d steps", len(list))
	}
	nowhere := filepath.Join(dir, "nowhere", "forbear.db")
	if _, err := sqlstore.OpenSQLite(t.Context(), nowhere); err == nil || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("got %v", err)
	}
}

// connect opens a database by its postgres:// URL or its file, with a schema as
// it is. close closes it, and then its pools.
func connect(ctx context.Context, place string, opts ...sqlstore.Option) (db *sqlstore.DB, close func(), err error) {
	if strings.HasPrefix(place, "postgres://") {
		pool, err := sql.Open("pgx", place)
		if err != nil {
			return nil, nil, err
		}
		db := sqlstore.Postgres(pool, opts...)
		return db, func() { _ = db.Close(); _ = pool.Close() }, nil
	}
	if db, err = sqlstore.OpenSQLite(ctx, place, opts...); err != nil {
		return nil, nil, err
	}
	return db, func() { _ = db.Close() }, nil
}

// migrated makes the template of the databases: forbear's schema, and the roles of the
// tests, which are the server's.
func migrated(url string) error {
	ctx := context.Background()
	db, end, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer end()
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	pool, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, `CREATE ROLE shop LOGIN; CREATE ROLE application`)
	return errors.Join(err, pool.Close())
}

// schema is a file of SQLite with forbear's schema. A copy of it takes much less than
// all migrations do.
var schema = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "forbear-sqlite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	place := filepath.Join(dir, "forbear.db")
	db, err := sqlstore.OpenSQLite(context.Background(), place)
	if err != nil {
		return nil, err
	}
	_, err = db.Migrate(context.Background())
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(place)
})

// file makes a file of SQLite with forbear's schema.
func file(t *testing.T) string {
	t.Helper()
	text, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(t.TempDir(), "forbear.db")
	if err := os.WriteFile(place, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return place
}

// open opens a database for the time of a test, and brings its schema up to
// date.
func open(t *testing.T, place string, opts ...sqlstore.Option) *sqlstore.DB {
	t.Helper()
	db, end, err := connect(t.Context(), place, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}
