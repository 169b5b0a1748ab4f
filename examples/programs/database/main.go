// Command database is a program of docs/guides/database.md: it moves money between
// two accounts, once, whatever becomes of its connections.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/forbear-go/forbear"
)

// mayGoAway knows the errors after which the same transaction may succeed. It is
// for operations that are safe to repeat: for pgx a connection that was lost during
// a commit is closed, too.
func mayGoAway(err error) (forbear.Failure, bool) {
	if errors.Is(err, pgconn.ErrConnClosed) {
		return forbear.Failure{Class: forbear.ClassTransient, Type: "connection_closed"}, true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return forbear.Failure{}, false // the network's errors are known to forbear
	}
	switch pg.Code {
	case "40001", "40P01": // serialization failure, deadlock
	case "53300", "57P01", "57P02", "57P03": // too many connections, going down, starting
	default:
		return forbear.Failure{}, false // the same statement fails again
	}
	return forbear.Failure{Class: forbear.ClassTransient, Type: "postgres_" + pg.Code}, true
}

// transfer moves an amount. It is safe to repeat, also after a commit whose
// response was lost: the number of the transfer is stored with it.
func transfer(ctx context.Context, db *sql.DB, number, from, to string, amount int) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	result, err := tx.ExecContext(ctx, `INSERT INTO transfers (number) VALUES ($1) ON CONFLICT DO NOTHING`, number)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err // an earlier attempt has done it
	}
	if _, err = tx.ExecContext(ctx, `UPDATE accounts SET balance = balance - $2 WHERE name = $1`, from, amount); err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, `UPDATE accounts SET balance = balance + $2 WHERE name = $1`, to, amount); err != nil {
		return err
	}
	return tx.Commit()
}

func main() {
	ctx := context.Background()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		log.Fatal("DATABASE_URL is not set: want an empty database, as in postgres://localhost/shop")
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ledger := forbear.Must(forbear.New("ledger", forbear.Policy{
		PerAttempt: 10 * time.Second,
		Backoff:    forbear.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
	}, forbear.WithClassifier(mayGoAway)))

	// Idempotent is our word that the whole transaction may be repeated. Without
	// it a connection that is lost on the way ends the call.
	attempts := 0
	err = ledger.Do(forbear.Idempotent(ctx), func(ctx context.Context) error {
		attempts++
		return transfer(ctx, db, "transfer-17", "alice", "bob", 30)
	})
	if err != nil {
		log.Fatal(err)
	}
	var alice, bob int
	err = db.QueryRowContext(ctx, `SELECT (SELECT balance FROM accounts WHERE name = 'alice'),
		(SELECT balance FROM accounts WHERE name = 'bob')`).Scan(&alice, &bob)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("after", attempts, "attempts: alice", alice, "bob", bob)
}
