package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// exact puts the transaction mode before pay, on the given pool.
func exact(t *testing.T, store *sqlstore.DB, pool *sql.DB, pay http.HandlerFunc) func(key string) (status int, replayed bool) {
	t.Helper()
	h, err := idempotency.Handler(store.Transactions(pool), idempotency.Options{
		Scope: idempotency.SingleTenant(), Transaction: true, Wait: time.Minute, StoreTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}, pay)
	if err != nil {
		t.Fatal(err)
	}
	return func(key string) (int, bool) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/pay", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", key)
		h.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Idempotent-Replayed") == "true"
	}
}

func run1(t *testing.T, pool *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := pool.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

func rows(t *testing.T, pool *sql.DB, table string) (n int) {
	t.Helper()
	if err := pool.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A commit that the database refuses leaves neither an effect nor a response:
// the same key runs again, exactly once. On SQLite a refused commit leaves its
// transaction open, which must not come back to the pool.
func TestTransactionCommitFails(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		store, pool := open(t, place), outside(t, place)
		pool.SetMaxOpenConns(1)
		run1(t, pool, `CREATE TABLE account (id INTEGER PRIMARY KEY)`, `INSERT INTO account (id) VALUES (1)`,
			`CREATE TABLE paid (account INTEGER NOT NULL REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED)`)
		var runs atomic.Int64
		send := exact(t, store, pool, func(w http.ResponseWriter, r *http.Request) {
			account := 1
			if runs.Add(1) <= 2 {
				account = 7 // not there, which shows at the commit
			}
			if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), fmt.Sprint(`INSERT INTO paid (account) VALUES (`, account, `)`)); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusCreated)
		})
		for i, want := range []struct {
			status, runs, paid int
			replayed           bool
		}{{503, 1, 0, false}, {503, 2, 0, false}, {201, 3, 1, false}, {201, 3, 1, true}} {
			if status, replayed := send("k"); status != want.status || replayed != want.replayed || runs.Load() != int64(want.runs) || rows(t, pool, "paid") != want.paid {
				t.Fatalf("%d: %d, replayed %v after %d runs, %d paid; want %+v", i, status, replayed, runs.Load(), rows(t, pool, "paid"), want)
			}
		}
		if status, _ := send("another"); status != 201 || rows(t, pool, "paid") != 2 {
			t.Errorf("the pool afterwards: %d, %d paid", status, rows(t, pool, "paid"))
		}
	})
}

// Two operations that PostgreSQL cannot put in any order: one commits, the
// other is refused, and its retry runs again, once.
func TestTransactionSerializationFailure(t *testing.T) {
	t.Parallel()
	place := pgtest.Database(t)
	store := open(t, place)
	pool, err := sql.Open("pgx", place+"&default_transaction_isolation=serializable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	run1(t, pool, `CREATE TABLE paid (k TEXT NOT NULL, seen INTEGER NOT NULL)`)
	var runs atomic.Int64
	first, second := make(chan struct{}), make(chan struct{})
	send := exact(t, store, pool, func(w http.ResponseWriter, r *http.Request) {
		tx := idempotency.Tx(r.Context())
		var n int
		if err := tx.QueryRowContext(r.Context(), `SELECT count(*) FROM paid`).Scan(&n); err != nil {
			t.Error(err)
		}
		if _, err := tx.ExecContext(r.Context(), `INSERT INTO paid (k, seen) VALUES ($1, $2)`, r.Header.Get("Idempotency-Key"), n); err != nil {
			t.Error(err)
		}
		switch runs.Add(1) {
		case 1:
			close(first)
			<-second // the other has seen what this one saw
		case 2:
			close(second)
			time.Sleep(300 * time.Millisecond) // while the first commits
		}
		w.WriteHeader(http.StatusCreated)
	})
	var statuses [2]int
	var wg sync.WaitGroup
	wg.Go(func() { statuses[0], _ = send("a") })
	<-first
	wg.Go(func() { statuses[1], _ = send("b") })
	wg.Wait()
	if statuses[0]+statuses[1] != 201+503 {
		t.Fatalf("got %v, want one done and one refused", statuses)
	}
	if n := rows(t, pool, "paid"); n != 1 {
		t.Errorf("%d paid, want 1", n)
	}
	again := map[bool]string{true: "a", false: "b"}[statuses[0] == 503]
	for i := range 2 {
		if status, replayed := send(again); status != 201 || replayed != (i > 0) {
			t.Errorf("retry %d: %d, replayed %v", i, status, replayed)
		}
	}
	if runs.Load() != 3 || rows(t, pool, "paid") != 2 {
		t.Errorf("%d runs, %d paid; want 3 and 2", runs.Load(), rows(t, pool, "paid"))
	}
}

// cutter is a connection to PostgreSQL that breaks at the next commit: before
// the server sees it, or after and before its response.
type cutter struct {
	net.Conn
	mode *atomic.Int32 // 0: not, 1: before, 2: after
	deaf atomic.Bool
}

func (c *cutter) Read(p []byte) (int, error) {
	if c.deaf.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

func (c *cutter) Write(p []byte) (int, error) {
	if !bytes.Contains(bytes.ToLower(p), []byte("commit")) {
		return c.Conn.Write(p)
	}
	switch c.mode.Swap(0) {
	case 1:
		_ = c.Close()
		return 0, net.ErrClosed
	case 2:
		c.deaf.Store(true)
		n, err := c.Conn.Write(p)
		if err == nil {
			_, err = c.Conn.Read(make([]byte, 1)) // the server has done it
		}
		return n, err
	}
	return c.Conn.Write(p)
}

// The connection breaks while the commit is under way. No one knows whether it
// was done, and the client is to ask again: the same key finds the response, or
// runs again.
func TestTransactionConnectionLostDuringCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		mode     int32
		replayed bool
		runs     int64
	}{{"before the server saw it", 1, false, 2}, {"after the server did it", 2, true, 1}} {
		t.Run(c.name, func(t *testing.T) {
			place := pgtest.Database(t)
			store := open(t, place)
			cfg, err := pgx.ParseConfig(place)
			if err != nil {
				t.Fatal(err)
			}
			var mode atomic.Int32
			cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &cutter{Conn: conn, mode: &mode}, err
			}
			pool := stdlib.OpenDB(*cfg)
			t.Cleanup(func() { _ = pool.Close() })
			run1(t, pool, `CREATE TABLE paid (k TEXT NOT NULL)`)
			var runs atomic.Int64
			send := exact(t, store, pool, func(w http.ResponseWriter, r *http.Request) {
				runs.Add(1)
				if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO paid (k) VALUES ('x')`); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			mode.Store(c.mode)
			if status, replayed := send("k"); status != 503 || replayed {
				t.Fatalf("the broken one: %d, replayed %v", status, replayed)
			}
			if status, replayed := send("k"); status != 201 || replayed != c.replayed {
				t.Errorf("the retry: %d, replayed %v, want %v", status, replayed, c.replayed)
			}
			if runs.Load() != c.runs || rows(t, pool, "paid") != 1 {
				t.Errorf("%d runs, %d paid; want %d and 1", runs.Load(), rows(t, pool, "paid"), c.runs)
			}
		})
	}
}

// A hundred duplicates wait for one slow run, here and in another process, and
// leave the pool to others.
func TestDuplicatesDoNotExhaustThePool(t *testing.T) {
	t.Parallel()
	place := pgtest.Database(t)
	store := open(t, place)
	gate := make(chan struct{})
	var runs atomic.Int64
	pay := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "slow" {
			runs.Add(1)
			<-gate
		}
		if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO paid (k) VALUES ('x')`); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	}
	var pools [2]*sql.DB // of two processes, each with two connections
	var sends [2]func(string) (int, bool)
	for i := range pools {
		pool, err := sql.Open("pgx", place)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pool.Close() })
		pool.SetMaxOpenConns(2)
		pools[i], sends[i] = pool, exact(t, store, pool, pay)
	}
	run1(t, pools[0], `CREATE TABLE paid (k TEXT NOT NULL)`)
	statuses := make(chan int, 200)
	var wg sync.WaitGroup
	slow := func(i int) {
		status, _ := sends[i]("slow")
		statuses <- status
	}
	wg.Go(func() { slow(0) })
	for runs.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 50 {
		wg.Go(func() { slow(0) })
		wg.Go(func() { slow(1) })
	}
	for i, send := range sends { // in the middle of it all
		for n := range 5 {
			began := time.Now()
			if status, _ := send(fmt.Sprintf("other-%d-%d", i, n)); status != 201 {
				t.Errorf("process %d: another key got %d after %v", i, status, time.Since(began))
			}
		}
	}
	if n := pools[0].Stats().InUse; n > 1 {
		t.Errorf("%d connections in use, want that of the run alone", n)
	}
	close(gate)
	wg.Wait()
	close(statuses)
	got := map[int]int{}
	for s := range statuses {
		got[s]++
	}
	// Sixteen wait for a key in each process; the others are told to come back.
	if got[201] < 2 || got[201]+got[409] != 101 || runs.Load() != 1 || rows(t, pools[0], "paid") != 11 {
		t.Errorf("answers %v, %d runs, %d paid", got, runs.Load(), rows(t, pools[0], "paid"))
	}
}
