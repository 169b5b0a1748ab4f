package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
)

// Book a payment in the transaction of its key. The first attempt fails after
// it has written: nothing of it is left, and the second runs.
func Example_transaction() {
	err := transaction()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 503, 0 payments
	// 201, 1 payments
	// 201, 1 payments
}

func transaction() (err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "forbear-example-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "shop.db")
	db, end, err := connect(ctx, path)
	if err != nil {
		return err
	}
	defer end()
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	write, _ := sqlstore.SQLiteNames(path)
	pool, err := sql.Open("sqlite", write)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if _, err := pool.Exec(`CREATE TABLE payments (amount INTEGER)`); err != nil {
		return err
	}
	attempt := 0
	h, err := idempotency.Handler(db.Transactions(pool), idempotency.Options{Scope: idempotency.SingleTenant(), Transaction: true}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO payments (amount) VALUES (100)`); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if attempt++; attempt == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	if err != nil {
		return err
	}
	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "/pay", nil)
		r.Header.Set(idempotency.Header, "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var n int
		if err := pool.QueryRow(`SELECT count(*) FROM payments`).Scan(&n); err != nil {
			return err
		}
		fmt.Printf("%d, %d payments\n", w.Code, n)
	}
	return nil
}
