package sqltest

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

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
	writeName, readName := sqlstore.SQLiteNames(place)
	write, err := sql.Open("sqlite", writeName)
	if err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil { // makes the file, which the reading pool cannot
		return nil, nil, err
	}
	read, err := sql.Open("sqlite", readName)
	if err != nil {
		return nil, nil, err
	}
	db = sqlstore.SQLite(write, read, opts...)
	return db, func() { _ = db.Close(); _ = read.Close(); _ = write.Close() }, nil
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
