package idempotency_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// Put keys in front of a handler: the second request gets the first one's
// answer, and another request under the same key is refused.
func ExampleHandler() {
	payments := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	})
	h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{
		Scope: func(r *http.Request) (string, error) { return r.Header.Get("X-Principal"), nil }, // set by your authentication
	}, pay)
	if err != nil {
		fmt.Println(err)
		return
	}
	post := func(key, body string) {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(body))
		r.Header.Set("X-Principal", "ann")
		r.Header.Set(idempotency.Header, key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answer := w.Body.String()
		if w.Header().Get("Content-Type") == "application/problem+json" {
			answer = "a problem"
		}
		fmt.Printf("%d, replayed %q: %s\n", w.Code, w.Header().Get(idempotency.HeaderReplayed), answer)
	}
	post("7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", `{"amount":100}`)
	post("7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", `{"amount":100}`) // the client's retry
	post("7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", `{"amount":999}`) // its bug
	post("", `{"amount":100}`)
	// Output:
	// 201, replayed "": payment 1
	// 201, replayed "true": payment 1
	// 422, replayed "": a problem
	// 400, replayed "": a problem
}

// Look a record up whose outcome is unknown, and settle it after a look into
// the books.
func ExampleStore() {
	store := &memstore.Idempotency{}
	h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant()}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		idempotency.MarkUnknown(r.Context()) // the bank's connection broke
		w.WriteHeader(http.StatusBadGateway)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/pay", nil)
	r.Header.Set(idempotency.Header, idempotency.NewKey())
	send := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.Clone(r.Context()))
		return w.Code
	}
	fmt.Println(send(), send())
	held, err := store.List(r.Context(), idempotency.Filter{State: idempotency.Held})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rec := range held {
		fmt.Println(rec.Operation, rec.State)
		err := store.Resolve(r.Context(), rec.ID, idempotency.Resolution{
			Response: &idempotency.Response{Status: http.StatusCreated}, By: "ann", Why: "it is in the ledger",
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(send())
	// Output:
	// 502 409
	// POST /pay held
	// 201
}

// Book a payment in the transaction of its key: both are committed, or neither.
// This one needs a database; sqlstore/sqltest runs the like of it on SQLite
// and PostgreSQL.
func ExampleTx() {
	var db *sqlstore.DB // after Migrate
	var pool *sql.DB    // to the same database
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx := idempotency.Tx(r.Context())
		if _, err := tx.ExecContext(r.Context(), `INSERT INTO payments (amount) VALUES (100)`); err != nil {
			w.WriteHeader(http.StatusInternalServerError) // all is rolled back, and the next attempt runs
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	h, err := idempotency.Handler(db.Transactions(pool), idempotency.Options{
		Scope: idempotency.SingleTenant(), Transaction: true, Production: true,
	}, pay)
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("POST /pay", h)
}

// Keep outcomes in a file while the store is down: a process that is killed meanwhile
// loses none.
func ExampleBacklog_Spool() {
	var store idempotency.Store // of the handlers
	var err error
	backlog := &idempotency.Backlog{Store: store}
	err = backlog.Spool(idempotency.SpoolOptions{Path: "/var/lib/orders/outcomes.spool"})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant(), Backlog: backlog}, http.NewServeMux())
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("/", h)
	backlog.Close(context.Background()) // after the last request, before the store is closed
}
