package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// errPooler refuses a pooler that gives each transaction any of its connections: what
// forbear sets and prepares on one is not there on the next, and notifications do not
// arrive. Statements would fail at random.
var errPooler = errors.New("a pooler between forbear and PostgreSQL does not keep connections for a session (PgBouncer with pool_mode=transaction): " +
	"set pool_mode=session for this database in the pooler ([databases] name = host=... pool_mode=session), or connect to PostgreSQL directly")

const (
	// poolerTime bounds the look for a pooler, and the wait for a second connection.
	poolerTime = 5 * time.Second
	// poolerRounds is how often two connections are compared.
	poolerRounds = 3
)

// keepsSessions returns errPooler when connections do not keep what is set on them. Two
// of them set a word each, which no other connection has. A pooler with a single connection
// shows the second's word to the first; one that takes the next of several each time
// shows none to one of two questions. Without a second connection nothing is known, and
// nothing is refused, nor is it after any other error: the next statement says what that is.
func keepsSessions(ctx context.Context, pool *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, poolerTime)
	defer cancel()
	var conns [2]*sql.Conn
	for i := range conns {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return nil
		}
		defer func() { _ = conn.Close() }()
		conns[i] = conn
	}
	for range poolerRounds {
		words := [2]string{rand.Text(), rand.Text()}
		for i, conn := range conns {
			if _, err := ask(ctx, conn, "SELECT set_config('forbear.session', $1, false)", words[i]); err != nil {
				return nil
			}
		}
		for range 2 {
			got, err := ask(ctx, conns[0], "SELECT current_setting('forbear.session', true)")
			if err != nil {
				return nil
			}
			if got != words[0] {
				return errPooler
			}
		}
	}
	return nil
}

// ask returns the only field of a statement's result. The simple protocol prepares nothing,
// which would be the first to fail.
func ask(ctx context.Context, conn *sql.Conn, statement string, args ...any) (text string, err error) {
	var found sql.NullString
	err = conn.QueryRowContext(ctx, statement, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...).Scan(&found)
	return found.String, err
}
