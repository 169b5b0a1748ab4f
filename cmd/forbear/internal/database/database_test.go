package database

import (
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/internal/pgtest"
	"github.com/forbear-go/forbear/storetest"
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

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		return openTest(t, filepath.Join(t.TempDir(), "forbear.db"))
	})
}

func TestPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	storetest.Run(t, func(t *testing.T) storetest.Store { return openTest(t, server.Database(t)) })
}
