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
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// hung is a service whose first run pays, hangs until it is let go, and ends in
// a way of the test's. Every other run pays and responds at once.
type hung struct {
	begun, goOn chan struct{}
	letGo       func() // closes goOn
	once        sync.Once
	last        func(w http.ResponseWriter, r *http.Request) // of the first run
	results     chan idempotency.Result
	handler     http.Handler
}

// hang opens a process of a service on a pool of its own.
func hang(t *testing.T, place string, last func(http.ResponseWriter, *http.Request)) *hung {
	t.Helper()
	pool, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	h := &hung{begun: make(chan struct{}), goOn: make(chan struct{}), last: last, results: make(chan idempotency.Result, 100)}
	h.letGo = sync.OnceFunc(func() { close(h.goOn) })
	h.handler, err = idempotency.Handler(open(t, place).Transactions(pool), idempotency.Options{
		Scope: idempotency.SingleTenant(), Transaction: true, Lease: 3 * time.Second, Wait: -1, StoreTimeout: time.Minute,
		Observe: h.observe, Logger: slog.New(slog.DiscardHandler),
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// observe keeps the first results. A duplicate that asks until the key is free may
// have many more, which nobody reads.
func (h *hung) observe(e idempotency.Event) {
	select {
	case h.results <- e.Result:
	default:
	}
}

func (h *hung) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, _ := io.ReadAll(r.Body)
	run := "second"
	h.once.Do(func() { run = "first" })
	if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO paid (k) VALUES ($1)`, run); err != nil {
		panic(err)
	}
	if run == "first" && h.last != nil {
		close(h.begun)
		<-h.goOn
		h.last(w, r)
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "%s run, %s", run, who)
}

func (h *hung) send() (status int, body string, replayed bool) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/pay", strings.NewReader("{}"))
	r.Header.Set(idempotency.Header, "k")
	h.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header().Get(idempotency.HeaderReplayed) != ""
}

// A handler that does nothing with its transaction for longer than its lease has
// lost it: the key is free, in its own process and in another, and what it
// brings later is refused. It responds with what the other has stored.
func TestHungTransactionFreesItsKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		same bool // the duplicate comes to the same process
		last func(w http.ResponseWriter, r *http.Request)
	}{
		{"in another process", false, func(http.ResponseWriter, *http.Request) {}},
		{"in the same process", true, func(http.ResponseWriter, *http.Request) {}},
		{"whose handler goes on after an error", false, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO paid (k) VALUES ('late')`); err == nil {
				t.Error("a statement went through after the lease")
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := pgtest.Database(t)
			owner := hang(t, place, c.last)
			other := owner
			if !c.same {
				other = hang(t, place, nil)
				other.once.Do(func() {})
			}
			pool, err := sql.Open("pgx", place)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pool.Close() }()
			run1(t, pool, `CREATE TABLE paid (k TEXT NOT NULL)`)
			var wg sync.WaitGroup
			defer wg.Wait()
			defer owner.letGo()
			wg.Go(func() {
				if status, body, replayed := owner.send(); status != 201 || body != "second run, {}" || !replayed {
					t.Errorf("the owner responded %d %q, replayed %v; want what the other stored", status, body, replayed)
				}
			})
			<-owner.begun
			for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				status, body, replayed := other.send()
				if status == 201 && body == "second run, {}" && !replayed {
					break
				}
				if status != 409 || time.Now().After(end) {
					t.Fatalf("%d %q, replayed %v: the key is not free", status, body, replayed)
				}
			}
			owner.letGo()
			wg.Wait()
			var paid string
			if err := pool.QueryRow(`SELECT string_agg(k, ' ') FROM paid`).Scan(&paid); err != nil || paid != "second" {
				t.Errorf("paid by %q, %v; want the second run alone", paid, err)
			}
		})
	}
}

// The late end of a transaction is an error of its own, and no success is told
// where no other has done the work.
func TestLateTransactionIsRefused(t *testing.T) {
	t.Parallel()
	place := pgtest.Database(t)
	pool, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	run1(t, pool, `CREATE TABLE paid (k TEXT NOT NULL)`)
	claim := idempotency.Claim{ID: idempotency.ID{Scope: "s", Key: "k"}, Fingerprint: "f", Owner: "o", Lease: 3 * time.Second, Retention: time.Hour}
	backend := 0
	_, err = open(t, place).Transactions(pool).Transact(t.Context(), claim, func(ctx context.Context, tx *sql.Tx, _ idempotency.Record) (*idempotency.Response, error) {
		if _, err := tx.ExecContext(ctx, `INSERT INTO paid (k) VALUES ('late')`); err != nil {
			t.Error(err)
		}
		if err := tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
			t.Error(err)
		}
		gone(t, pool, backend)
		return &idempotency.Response{Status: 201}, nil
	})
	if !errors.Is(err, sqlstore.ErrLeaseOver) || !errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("got %v, want ErrLeaseOver", err)
	}
	if n := rows(t, pool, "paid"); n != 0 {
		t.Errorf("%d paid after a commit that was refused", n)
	}

	lone := hang(t, place, func(http.ResponseWriter, *http.Request) {})
	var wg sync.WaitGroup
	wg.Go(func() {
		if status, body, _ := lone.send(); status != 503 || !strings.Contains(body, "store-unavailable") {
			t.Errorf("the owner responded %d %q", status, body)
		}
	})
	<-lone.begun
	idle := 0
	if err := pool.QueryRow(`SELECT COALESCE(max(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`).Scan(&idle); err != nil {
		t.Fatal(err)
	}
	gone(t, pool, idle)
	lone.letGo()
	wg.Wait()
	if got := <-lone.results; got != idempotency.Fenced {
		t.Errorf("observed %q, want %q", got, idempotency.Fenced)
	}
	if n := rows(t, pool, "paid"); n != 0 {
		t.Errorf("%d paid after a commit that was refused", n)
	}
}

// gone waits until the server has ended a session.
func gone(t *testing.T, pool *sql.DB, backend int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n := 0
		if err := pool.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, backend).Scan(&n); err != nil {
			t.Error(err)
			return
		}
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Error("the transaction outlives its lease")
			return
		}
	}
}
