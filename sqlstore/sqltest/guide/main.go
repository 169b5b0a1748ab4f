// Command guide is the program of docs/guides/inbox.md.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // PostgreSQL: github.com/jackc/pgx/v5/stdlib

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// book is the handler: a row of the business, and a message for the ERP system. Both
// are there when the event is done, and neither is when it is not.
func book(ctx context.Context, e consume.Event) error {
	tx := consume.Tx(ctx)
	if _, err := tx.ExecContext(ctx, `INSERT INTO bookings (event, body) VALUES (?, ?)`, e.ID, e.Data); err != nil {
		return err
	}
	_, err := webhook.Outbox{SQLite: true}.Insert(ctx, tx, webhook.Message{
		ID: "booked-" + e.ID, Endpoints: []string{"erp"}, Type: "order.booked", CorrelationID: e.CorrelationID, Body: e.Data,
	})
	if err == nil && consume.Attempt(ctx) == 1 {
		fmt.Println("attempt 1 fails after its work")
		return forbear.Retryable(errors.New("the credit limit is being changed"), forbear.Hint{})
	}
	return err
}

func main() {
	dir, err := os.MkdirTemp("", "forbear-guide-")
	check(err)
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, pool := openStore(ctx, filepath.Join(dir, "shop.db"))
	_, err = pool.ExecContext(ctx, `CREATE TABLE bookings (event TEXT NOT NULL, body BLOB NOT NULL)`)
	check(err)

	// The consumer. Its store has the application's pool, on which handlers work.
	retryer := forbear.Must(forbear.New("ledger", forbear.Policy{
		Kind: forbear.Event, Backoff: forbear.Backoff{Base: 10 * time.Millisecond},
	}, forbear.WithoutLog(), forbear.WithCallerDeadLetter()))
	consumer, err := consume.New(book, consume.Options{
		Group: "ledger", Store: db.Transactions(pool), Transaction: true, DLQ: db.DeadLetters(), Retryer: retryer,
	})
	check(err)
	broker := httptest.NewServer(consume.CloudEvents(consumer)) // or natsconsume.Run, kafkaconsume.Run, rabbitconsume.Run
	defer broker.Close()

	// The dispatcher, which sends what is in the outbox: forbear serve does the same.
	received := make(chan string, 10)
	erp := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- r.Header.Get("Webhook-Id") + " " + string(body)
	}))
	defer erp.Close()
	d, err := dispatch.New(dispatch.Config{
		Store: db.Webhooks(), Alerts: db.DeadLetters(), Logger: slog.New(slog.DiscardHandler),
		Guard: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, // for this example
	})
	check(err)
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	_, err = d.PutEndpoint(ctx, webhook.Endpoint{ID: "erp", URL: erp.URL, Secrets: []string{webhook.NewSecret()}})
	check(err)

	// The broker brings the event twice.
	for range 2 {
		fmt.Println("response", send(broker.URL))
	}
	var rows int
	check(pool.QueryRowContext(ctx, `SELECT count(*) FROM bookings`).Scan(&rows))
	fmt.Println("bookings", rows)
	fmt.Println("the ERP has received", <-received)
	stop()
	check(<-done)
	fmt.Println("and nothing else:", len(received))
}

// openStore opens the store, and the application's own pool.
func openStore(ctx context.Context, path string) (*sqlstore.DB, *sql.DB) {
	db, err := sqlstore.OpenSQLite(ctx, path)
	check(err)
	_, err = db.Migrate(ctx)
	check(err)
	name, _ := sqlstore.SQLiteNames(path)
	pool, err := sql.Open("sqlite", name)
	check(err)
	pool.SetMaxOpenConns(1)
	return db, pool
}

// send brings an event as a broker does over HTTP.
func send(url string) int {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"order":17}`))
	check(err)
	for name, value := range map[string]string{"specversion": "1.0", "id": "order-17", "source": "/shop", "type": "order.created"} {
		req.Header.Set("ce-"+name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	check(err)
	_ = resp.Body.Close()
	return resp.StatusCode
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
