// Command consumer books orders from events, each once, whatever the broker repeats: what
// the handler writes and the end of the event are committed together. What may succeed
// later is tried again, and what cannot becomes a dead letter.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
)

const schema = `CREATE TABLE IF NOT EXISTS bookings (number INTEGER PRIMARY KEY, cents INTEGER NOT NULL)`

// prices is the dependency that the handler works with: its budget and its breaker are
// what keeps a crowd of events from falling over it.
var prices = forbear.Must(forbear.New("prices", forbear.Policy{
	Kind:    forbear.Event,
	Backoff: forbear.Backoff{Base: 200 * time.Millisecond},
}, forbear.WithCallerDeadLetter())) // the consumer below has a queue of dead letters

// book is one attempt. An error that no one has marked is not tried again.
func book(ctx context.Context, e consume.Event) error {
	var order struct{ Number, Item int }
	if err := json.Unmarshal(e.Data, &order); err != nil {
		return err // the same bytes again are no better: a dead letter
	}
	cents, err := price(ctx, order.Item) // flaky.go; in production a call of another service
	if errors.Is(err, errBusy) {
		return forbear.Retryable(err, forbear.Hint{})
	}
	if err != nil {
		return err
	}
	// This transaction alone: what is done elsewhere goes through the outbox.
	_, err = consume.Tx(ctx).ExecContext(ctx, `INSERT INTO bookings (number, cents) VALUES ($1, $2)`, order.Number, cents)
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8092")); err != nil {
		log.Fatal(err)
	}
}

// serve takes events until ctx ends, and then until the handlers under way have ended.
func serve(ctx context.Context, address string) error {
	db, err := openStore(ctx, schema) // store.go: a file of SQLite
	if err != nil {
		return err
	}
	defer db.Close()
	store := db.Transactions(db.app)
	go idempotency.RunSweeper(ctx, store, nil) // forgets events after eight days
	consumer, err := consume.New(book, consume.Options{
		Group: "bookkeeping", Store: store, Transaction: true, DLQ: db.DeadLetters(), Retryer: prices,
		Observe: func(e consume.Event, d consume.Decision) { fmt.Printf("%s: %v, %s\n", e.ID, d.Action, d.Reason) },
	})
	if err != nil {
		return err
	}
	redriver := queue.NewRedriver(db.DeadLetters(), rand.Text(), map[string]queue.Target{"bookkeeping": consumer.Redrive}, nil)
	go redriver.Run(ctx) // runs the dead letters that forbear dlq redrive has chosen
	// CloudEvents over HTTP, from this machine: before others put what authenticates the
	// broker. NATS, Kafka and RabbitMQ have a Run each in module brokers.
	server := &http.Server{Addr: address, Handler: consume.CloudEvents(consumer), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		fmt.Println("stopping")
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended <- server.Shutdown(ctx)
	})
	go broker(ctx, "http://"+address, db.app) // flaky.go: brings events, to see something
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
