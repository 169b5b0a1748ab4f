package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

func TestTransactions(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		pool := outside(t, place)
		pool.SetMaxOpenConns(2)
		run1(t, pool, `CREATE TABLE paid (k TEXT NOT NULL)`)
		testTransactions(t, open(t, place).Transactions(pool), pool)
	})
}

// bank responds by the request's body: a status, or "panic", and pays in the
// request's transaction.
type bank struct {
	runs atomic.Int64
	gate chan struct{} // "slow" waits for it
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.runs.Add(1)
	text, _ := io.ReadAll(r.Body)
	if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO paid (k) VALUES ('x')`); err != nil {
		panic(err)
	}
	switch string(text) {
	case "panic":
		panic(http.ErrAbortHandler)
	case "unknown":
		idempotency.MarkUnknown(r.Context())
	case "slow":
		<-b.gate
	case "503":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, b.runs.Load())
}

func testTransactions(t *testing.T, store idempotency.Transactor, pool *sql.DB) {
	b := &bank{gate: make(chan struct{})}
	h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant(), Transaction: true, Wait: time.Minute, StoreTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}, b)
	if err != nil {
		t.Fatal(err)
	}
	send := func(key, body string) (status int, replayed bool) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/pay", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		func() {
			defer func() {
				if v := recover(); v != nil && !errors.Is(v.(error), http.ErrAbortHandler) {
					t.Errorf("panic: %v", v)
				} else if v != nil {
					w.Code = 0
				}
			}()
			h.ServeHTTP(w, r)
		}()
		return w.Code, w.Header().Get("Idempotent-Replayed") == "true"
	}
	paid := func() (n int) {
		t.Helper()
		if err := pool.QueryRow(`SELECT count(*) FROM paid`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, step := range []struct {
		key, body string
		status    int
		replayed  bool
		paid      int
	}{
		{"a", "", 201, false, 1},
		{"a", "", 201, true, 1},
		{"a", "other", 422, false, 1},
		{"b", "503", 503, false, 1}, // rolled back
		{"b", "503", 503, false, 1},
		{"c", "panic", 0, false, 1},
		{"c", "panic", 0, false, 1}, // and not stuck
		{"d", "unknown", 201, false, 1},
		{"d", "unknown", 409, false, 1},
	} {
		if status, replayed := send(step.key, step.body); status != step.status || replayed != step.replayed || paid() != step.paid {
			t.Fatalf("key %s, %q: %d, replayed %v, %d paid; want %+v", step.key, step.body, status, replayed, paid(), step)
		}
	}

	// Many duplicates of a slow one take no connections: the pool has two.
	var wg sync.WaitGroup
	before := b.runs.Load()
	for range 20 {
		wg.Go(func() {
			if status, _ := send("slow", "slow"); status != 201 {
				t.Errorf("slow: %d", status)
			}
		})
	}
	for b.runs.Load() == before {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if n := pool.Stats().InUse; n != 1 {
		t.Errorf("%d connections in use, want that of the run", n)
	}
	close(b.gate)
	wg.Wait()
	if n := b.runs.Load() - before; n != 1 || paid() != 2 {
		t.Errorf("%d runs, %d paid", n, paid())
	}
}
