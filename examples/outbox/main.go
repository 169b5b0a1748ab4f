// Command outbox ships orders, and tells of each in the same transaction: the customer
// hears of what has happened, and of nothing else. docs/guides/outbox-postgresql.md shows it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

type shop struct {
	db     *sql.DB
	outbox webhook.Outbox
}

// ship marks an order as shipped and tells the customer's endpoint: both or neither.
func (s *shop) ship(ctx context.Context, order int, customer string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	if _, err := tx.ExecContext(ctx, `UPDATE orders SET shipped = 1 WHERE id = $1`, order); err != nil {
		return err
	}
	_, err = s.outbox.Insert(ctx, tx, webhook.Message{
		ID:        fmt.Sprintf("order-%d-shipped", order), // the same if all of this is done again
		Endpoints: []string{customer},
		Type:      "order.shipped",
		Body:      fmt.Appendf(nil, `{"order":%d}`, order),
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	database, arrived := os.Getenv("DATABASE_URL"), func() {}
	if database == "" { // no forbear serve is beside this program: one is inside
		database, arrived = startForbear(ctx) // forbear.go
	}
	if err := run(ctx, database); err != nil {
		log.Fatal(err)
	}
	arrived()
}

func run(ctx context.Context, database string) error {
	s, err := open(database)
	if err != nil {
		return err
	}
	defer s.db.Close()
	_, err = s.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, shipped INTEGER NOT NULL)`)
	if err == nil {
		_, err = s.db.ExecContext(ctx, `INSERT INTO orders VALUES (1, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET shipped = 0`)
	}
	if err != nil {
		return err
	}

	if err := s.ship(ctx, 1, "acme"); err != nil {
		return err
	}
	err = s.ship(ctx, 2, "acne") // a slip
	if !errors.Is(err, webhook.ErrUnknownEndpoint) {
		return fmt.Errorf("order 2: got %v, want an unknown endpoint", err)
	}
	fmt.Println(err)
	var shipped int
	if err := s.db.QueryRowContext(ctx, `SELECT sum(shipped) FROM orders`).Scan(&shipped); err != nil {
		return err
	}
	fmt.Println(shipped, "order is shipped")
	return nil
}

// open opens forbear's database: a postgres:// URL, or the file of SQLite.
func open(name string) (*shop, error) {
	s := &shop{outbox: webhook.Outbox{CheckEndpoints: true}}
	driver := "pgx"
	if !strings.Contains(name, "://") {
		driver, s.outbox.SQLite = "sqlite", true
		name, _ = sqlstore.SQLiteNames(name) // waits for others, and syncs
	}
	var err error
	s.db, err = sql.Open(driver, name)
	return s, err
}
