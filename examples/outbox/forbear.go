package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// startForbear plays what is beside the program in earnest: forbear serve --database FILE,
// and the customer's endpoint, which fails at first. Arrived prints what came there,
// and ends both.
func startForbear(ctx context.Context) (database string, arrived func()) {
	dir, err := os.MkdirTemp("", "forbear-outbox-")
	check(err)
	database = filepath.Join(dir, "shop.db")
	db, err := sqlstore.OpenSQLite(ctx, database)
	check(err)
	_, err = db.Migrate(ctx)
	check(err)
	d, err := dispatch.New(dispatch.Config{
		Store: db.Webhooks(), Alerts: db.DeadLetters(),
		Guard: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, // acme is on this machine
	})
	check(err)
	seen := make(chan string, 100)
	acme := customer(seen)
	_, err = d.PutEndpoint(ctx, webhook.Endpoint{ID: "acme", URL: acme.URL})
	check(err)

	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- d.Run(running) }()
	return database, func() {
		for range 2 {
			select {
			case line := <-seen:
				fmt.Println(line)
			case <-ctx.Done():
			}
		}
		stop()
		check(<-done)
		_, _ = db.Close(), os.RemoveAll(dir)
		acme.Close()
	}
}

// customer is acme, which fails once. A message may come twice, with the same id.
func customer(seen chan<- string) *httptest.Server {
	var calls atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		message := r.Header.Get("Webhook-Id") + " " + string(body)
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			seen <- "acme responds 503 to " + message
			return
		}
		seen <- "acme takes " + message
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
