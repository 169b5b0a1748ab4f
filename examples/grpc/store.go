package main

import (
	"context"
	"database/sql"
	"errors"
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
	rest []*sql.DB
	temp string
}

// openStore opens the file that DATABASE names, or one that goes with the program.
func openStore(ctx context.Context, schema string) (s *store, err error) {
	s = &store{}
	path := os.Getenv("DATABASE")
	if path == "" {
		if s.temp, err = os.MkdirTemp("", "forbear-example-"); err != nil {
			return nil, err
		}
		path = filepath.Join(s.temp, "shop.db")
	}
	writing, reading := sqlstore.SQLiteNames(path)
	open := func(name string, connections int) *sql.DB {
		pool, openErr := sql.Open("sqlite", name)
		if openErr == nil {
			pool.SetMaxOpenConns(connections)
			openErr = pool.PingContext(ctx) // makes the file, which the reading pool cannot
			s.rest = append(s.rest, pool)
		}
		err = errors.Join(err, openErr)
		return pool
	}
	s.DB = sqlstore.SQLite(open(writing, 1), open(reading, 4)) // one writer, as SQLite has it
	s.app = open(writing, 1)
	if err == nil {
		_, err = s.Migrate(ctx)
	}
	if err == nil {
		_, err = s.app.ExecContext(ctx, schema)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close lets the writes under way finish.
func (s *store) Close() {
	_ = s.DB.Close()
	for _, pool := range s.rest {
		_ = pool.Close()
	}
	if s.temp != "" {
		_ = os.RemoveAll(s.temp)
	}
}
