package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// Pools without a bound, a server with few connections, and far more requests at
// once, in both modes: duplicates of one key, and a key each. None is refused for
// want of a connection, and each key runs once.
func TestUnboundedPoolsFitTheServer(t *testing.T) {
	t.Parallel()
	place := pgtest.Start(t, "max_connections=20").Database(t)
	store := open(t, place)
	pool, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	run1(t, pool, `CREATE TABLE paid (k TEXT NOT NULL)`)
	pay := func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(idempotency.Header)
		if tx := idempotency.Tx(r.Context()); tx != nil {
			if _, err := tx.ExecContext(r.Context(), `INSERT INTO paid (k) VALUES ($1)`, key); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Millisecond) // with a connection
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "paid ", key)
	}
	for _, exact := range []bool{false, true} {
		h, err := idempotency.Handler(store.Transactions(pool), idempotency.Options{
			Scope: idempotency.SingleTenant(), Transaction: exact, StoreTimeout: time.Minute, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		}, http.HandlerFunc(pay))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		send := func(key string, allowed ...int) {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/pay", strings.NewReader("{}"))
			r.Header.Set(idempotency.Header, key)
			h.ServeHTTP(w, r)
			for _, status := range allowed {
				if w.Code == status && (status != 201 || w.Body.String() == "paid "+key) {
					return
				}
			}
			t.Errorf("exact %v, %s: %d %s", exact, key, w.Code, w.Body)
		}
		for i := range 200 {
			wg.Go(func() { send(fmt.Sprint("same-", exact), 201, 409) })
			wg.Go(func() { send(fmt.Sprint("own-", exact, "-", i), 201) })
		}
		wg.Wait()
	}
	var n, keys int
	if err := pool.QueryRow(`SELECT count(*), count(DISTINCT k) FROM paid`).Scan(&n, &keys); err != nil || n != 201 || keys != 201 {
		t.Errorf("%d paid for %d keys, %v; want 201 for 201", n, keys, err)
	}
}
