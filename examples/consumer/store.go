package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

// store is forbear's tables and the application's in one file of SQLite, for one process.
// On PostgreSQL one pool serves for both, and any number of processes share it:
// sqlstore.Postgres(pool) and Transactions(pool), with github.com/jackc/pgx/v5/stdlib.
type store struct {
	*sqlstore.DB
	app  *sql.DB // the application's own pool
	temp string
}

// openStore opens the file that DATABASE names, or one that goes with the program.
func openStore(ctx context.Context, schema string) (*store, error) {
	s := &store{}
	path := os.Getenv("DATABASE")
	if path == "" {
		var err error
		if s.temp, err = os.MkdirTemp("", "forbear-example-"); err != nil {
			return nil, err
		}
		path = filepath.Join(s.temp, "shop.db")
	}
	if err := s.open(ctx, path, schema); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *store) open(ctx context.Context, path, schema string) (err error) {
	if s.DB, err = sqlstore.OpenSQLite(ctx, path); err != nil {
		return err
	}
	name, _ := sqlstore.SQLiteNames(path)
	if s.app, err = sql.Open("sqlite", name); err != nil {
		return err
	}
	s.app.SetMaxOpenConns(1) // one writer, as SQLite has it
	_, err = s.Migrate(ctx)
	if err == nil {
		_, err = s.app.ExecContext(ctx, schema)
	}
	return err
}

// Close lets the writes under way finish.
func (s *store) Close() {
	if s.DB != nil {
		_ = s.DB.Close()
	}
	if s.app != nil {
		_ = s.app.Close()
	}
	if s.temp != "" {
		_ = os.RemoveAll(s.temp)
	}
}
