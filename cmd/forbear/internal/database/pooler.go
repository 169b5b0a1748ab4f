package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// errPooler refuses a pooler that gives each transaction any of its connections: what
// forbear sets and prepares on one is not there on the next, and notifications do not
// arrive. Statements would fail now and then, as luck has it.
var errPooler = errors.New("there is a pooler in between that does not keep a connection for its client, such as PgBouncer with pool_mode = transaction: " +
	"set pool_mode=session for this database in the pooler ([databases] name = host=... pool_mode=session), or connect to PostgreSQL directly")

const (
	// poolerTime bounds the look for a pooler, and the wait for a second connection.
	poolerTime = 5 * time.Second
	// poolerRounds is how often two connections are compared.
	poolerRounds = 3
)

// keepsSessions returns errPooler when connections do not keep what is set on them. Two
// of them set a word each, which no one else has. A pooler that has a single connection
// shows the second's word to the first; one that takes the next of several each time
// shows none to one of two questions. Where there is no second connection to be had,
// nothing is known, and nothing is refused.
func keepsSessions(ctx context.Context, pool *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, poolerTime)
	defer cancel()
	return raw(ctx, pool, func(a *pgconn.PgConn) error {
		return raw(ctx, pool, func(b *pgconn.PgConn) error { return compare(ctx, a, b) })
	})
}

// raw gives f a connection of the pool; without one it does nothing.
func raw(ctx context.Context, pool *sql.DB, f func(*pgconn.PgConn) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	return conn.Raw(func(c any) error { return f(c.(*stdlib.Conn).Conn().PgConn()) })
}

// compare lets two connections set words and read them again. The simple protocol
// prepares nothing, which would be the first to fail.
func compare(ctx context.Context, a, b *pgconn.PgConn) error {
	for range poolerRounds {
		word := rand.Text()
		for _, set := range []struct {
			conn *pgconn.PgConn
			word string
		}{{a, word}, {b, rand.Text()}} {
			if _, err := ask(ctx, set.conn, fmt.Sprintf("SELECT set_config('forbear.session', '%s', false)", set.word)); err != nil {
				return nil // not a pooler's doing: the next statement says what it is
			}
		}
		for range 2 {
			got, err := ask(ctx, a, "SELECT current_setting('forbear.session', true)")
			if err != nil {
				return nil
			}
			if got != word {
				return errPooler
			}
		}
	}
	return nil
}

// ask returns the only field of a statement's result.
func ask(ctx context.Context, conn *pgconn.PgConn, statement string) (string, error) {
	results, err := conn.Exec(ctx, statement).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return "", errors.New("no row")
	}
	return string(results[0].Rows[0][0]), nil
}
