// Package seed fills a database of forbear's with as much history as a busy fleet leaves
// in a week. One row of each kind is written by the product's store; a few statements
// multiply it. No cipher is used.
package seed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

// Config says how much there is of what. The zero value of each field is its default.
type Config struct {
	Messages  int // default 1,000,000, which were accepted over the last six days
	Letters   int // about so many of them: default a tenth
	Endpoints int // default 10,000, named endpoint-00000001 and so on, beside Stuck
	Held      int // keys whose outcome is unknown: default 1,000; nine times as many are completed
	Redrives  int // default 200, all done
	// StuckWaiting and StuckDead are the messages that wait for the endpoint Stuck, and its
	// dead letters, all of one cause. By default 5,000 and 2,000, less among few messages.
	StuckWaiting, StuckDead int
	// StuckURL is where Stuck receives. By default nothing is there. Its messages are due in an
	// hour at the earliest.
	StuckURL string
}

// Stuck is the id of the endpoint that everything fails at.
const Stuck = "stuck"

// step is from one message to the next: a million take six days, less than serve keeps.
const step = 518 * time.Millisecond

func (c Config) withDefaults() Config {
	set := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	set(&c.Messages, 1_000_000)
	set(&c.Letters, c.Messages/10)
	set(&c.Endpoints, 10_000)
	set(&c.Held, 1000)
	set(&c.Redrives, 200)
	set(&c.StuckWaiting, min(5000, c.Messages/20))
	set(&c.StuckDead, min(2000, c.Messages/50))
	if c.StuckURL == "" {
		c.StuckURL = "https://stuck.example/hooks"
	}
	return c
}

// Fill brings the schema of a database up to date and fills it: an SQLite file, or a
// postgres:// URL. No other process may work on it meanwhile.
func Fill(ctx context.Context, database string, c Config) error {
	c = c.withDefaults()
	if 10*(c.StuckWaiting+c.StuckDead) > c.Messages || c.Letters > c.Messages/2 {
		return fmt.Errorf("%d messages are too few for the endpoint %s and %d dead letters", c.Messages, Stuck, c.Letters)
	}
	server := strings.HasPrefix(database, "postgres")
	db, pool, err := open(ctx, database, server)
	if err != nil {
		return err
	}
	s := seeding{Config: c, pool: pool, server: server, now: time.Now().Truncate(time.Second)}
	_, err = db.Migrate(ctx)
	if err == nil {
		err = s.templates(ctx, db)
	}
	if err = errors.Join(err, db.Close()); err == nil {
		err = s.multiply(ctx)
	}
	return errors.Join(err, pool.Close())
}

// open opens the store, and a pool beside it that does not wait for the disk.
func open(ctx context.Context, database string, server bool) (*sqlstore.DB, *sql.DB, error) {
	if server {
		pool, err := sql.Open("pgx", database)
		if err != nil {
			return nil, nil, err
		}
		pool.SetMaxOpenConns(16)
		return sqlstore.Postgres(pool), pool, nil
	}
	db, err := sqlstore.OpenSQLite(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	name, _ := sqlstore.SQLiteNames(database)
	pool, err := sql.Open("sqlite", name+"&_pragma=synchronous(OFF)&_pragma=cache_size(-200000)")
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	pool.SetMaxOpenConns(1)
	return db, pool, nil
}
