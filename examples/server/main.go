// Command server takes payments over HTTP, each once for its idempotency key, whatever
// its clients repeat. The payment and its response are committed together.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
)

// On PostgreSQL: id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY.
const schema = `CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL)`

// pay writes through the transaction of its key alone: what it does elsewhere is not
// part of it.
func pay(w http.ResponseWriter, r *http.Request) {
	var order struct{ Cents int }
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Cents <= 0 {
		http.Error(w, `want {"cents": 4200}`, http.StatusBadRequest)
		return
	}
	var id int
	insert := idempotency.Tx(r.Context()).QueryRowContext(r.Context(), `INSERT INTO payments (cents) VALUES ($1) RETURNING id`, order.Cents)
	if err := insert.Scan(&id); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable) // rolled back: the same key runs again
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"payment": %d, "cents": %d}`+"\n", id, order.Cents)
}

// password is the one caller's; without one in the environment, no one knows it but
// caller.go.
var password = cmp.Or(os.Getenv("SHOP_PASSWORD"), rand.Text())

// principal says whose request it is: keys of two callers never meet. In production it is
// what authenticated the caller, and never the value of a credential.
func principal(r *http.Request) (string, error) {
	user, given, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(user+":"+given), []byte("shop:"+password)) == 0 {
		return "", errors.New("no such caller") // 401
	}
	return user, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8091")); err != nil {
		log.Fatal(err)
	}
}

// serve serves until ctx ends, and then until the requests under way have their responses.
func serve(ctx context.Context, address string) error {
	db, err := openStore(ctx, schema) // store.go: a file of SQLite
	if err != nil {
		return err
	}
	defer db.Close()
	store := db.Transactions(db.app)
	go idempotency.RunSweeper(ctx, store, nil) // forgets keys after two days
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", pay)
	once, err := idempotency.Handler(store, idempotency.Options{
		Scope: principal, Transaction: true, Production: true,
	}, mux)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: address,
		// Inbound reads the caller's deadline, and tells it when retries below were used up.
		Handler:           httpretry.Inbound(once),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than the clients keep their connections
	}
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		fmt.Println("stopping")
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended <- server.Shutdown(ctx)
	})
	go impatient("http://"+address, db.app) // caller.go: a client, to see something
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
