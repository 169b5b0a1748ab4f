package idemfixture

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// exactEnv turns the test binary into a service that books payments in the
// transaction of their keys. Its value is a database.
const exactEnv = "FORBEAR_TEST_EXACT"

// serveExact runs until its standard input ends, or until it is killed.
func serveExact(place string) error {
	ctx := context.Background()
	db, err := database.Open(ctx, place)
	if err != nil {
		return err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	pool, err := openPool(place)
	if err != nil {
		return err
	}
	if _, err := pool.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS paid (k TEXT NOT NULL)`); err != nil {
		return err
	}
	insert := `INSERT INTO paid (k) VALUES (?)`
	if strings.HasPrefix(place, "postgres") {
		insert = `INSERT INTO paid (k) VALUES ($1)`
	}
	h, err := idempotency.Handler(db.Transactions(pool), idempotency.Options{
		Scope: idempotency.SingleTenant(), Transaction: true, Wait: 200 * time.Millisecond, StoreTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(idempotency.Header)
		if _, err := idempotency.Tx(r.Context()).ExecContext(r.Context(), insert, key); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		time.Sleep(rand.N(time.Millisecond)) // a moment to die in
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid "+key)
	}))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(l) }()
	fmt.Println("http://" + l.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return srv.Close()
}

func openPool(place string) (*sql.DB, error) {
	if strings.HasPrefix(place, "postgres") {
		pool, err := sql.Open("pgx", place)
		if err == nil {
			pool.SetMaxOpenConns(8)
			pool.SetMaxIdleConns(8)
		}
		return pool, err
	}
	write, _ := sqlstore.SQLiteNames(place)
	pool, err := sql.Open("sqlite", write)
	if err == nil {
		pool.SetMaxOpenConns(1) // they would only wait for each other
	}
	return pool, err
}

// mortal is a service that is killed and started again.
type mortal struct {
	t     *testing.T
	place string
	url   atomic.Pointer[string]
	cmd   *exec.Cmd
	kills int
}

func (m *mortal) start() {
	m.t.Helper()
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), exactEnv+"="+m.place)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.cmd.Stderr = os.Stderr
	if _, err := m.cmd.StdinPipe(); err != nil {
		m.t.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.kill()
		m.t.Fatalf("the service did not start: %v", err)
	}
	url := strings.TrimSpace(line)
	m.url.Store(&url)
}

func (m *mortal) kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	m.kills++
}

// pay asks until it has the answer, with one key. It reports how often it asked
// and whether the answer came from the store.
func (m *mortal) pay(ctx context.Context, client *http.Client, key string) (asked int, replayed bool, err error) {
	for ; ctx.Err() == nil; time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond) {
		asked++
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, *m.url.Load()+"/pay", strings.NewReader("{}"))
		if err != nil {
			return asked, false, err
		}
		req.Header.Set(idempotency.Header, key)
		resp, err := client.Do(req)
		if err != nil {
			continue // it is dead, or died
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case err != nil, resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusInternalServerError,
			resp.StatusCode == http.StatusConflict && strings.Contains(string(text), "/in-progress"):
			continue
		case resp.StatusCode != http.StatusCreated || string(text) != "paid "+key:
			return asked, false, fmt.Errorf("%s: %d %s", key, resp.StatusCode, text)
		}
		return asked, resp.Header.Get(idempotency.HeaderReplayed) != "", nil
	}
	return asked, false, errors.New("no answer in time")
}

// TestSoakKilledTransactions kills the service again and again while clients
// pay, each operation under one key until it is answered: every payment is
// booked once. At night it is 20,000 payments on each database.
func TestSoakKilledTransactions(t *testing.T) {
	operations, every := ringtest.Size(600, 20_000), ringtest.Size(100, 200)
	for name, place := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "forbear.db"), "postgres": pgtest.Database(t)} {
		t.Run(name, func(t *testing.T) { soakKilled(t, place, operations, every) })
	}
}

// soakKilled kills the service after every so many operations, more or less.
func soakKilled(t *testing.T, place string, operations, every int) {
	m := &mortal{t: t, place: place}
	m.start()
	const clients = 8
	var next, asked, replays, failed atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range clients {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			for i := next.Add(1); i <= int64(operations); i = next.Add(1) {
				n, replayed, err := m.pay(t.Context(), client, fmt.Sprint("op-", i))
				asked.Add(int64(n))
				if replayed {
					replays.Add(1)
				}
				if err != nil {
					failed.Add(1)
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for due := int64(every); ; {
		select {
		case <-done:
		case <-time.After(time.Millisecond):
			if next.Load() >= due {
				m.kill()
				m.start()
				due = next.Load() + int64(every/2+rand.IntN(every))
			}
			continue
		}
		break
	}
	took := time.Since(began)
	m.kill()
	rows, keys := countPaid(t, place)
	t.Logf("%d operations in %v (%.0f/s), %d kills, %d requests, %d answers from the store: %d effects for %d keys",
		operations, took.Round(time.Millisecond), float64(operations)/took.Seconds(), m.kills, asked.Load(), replays.Load(), rows, keys)
	if rows != operations || keys != operations {
		t.Errorf("%d effects for %d keys, want %d of each: none lost, none twice", rows, keys, operations)
	}
	if m.kills < 3 {
		t.Errorf("only %d kills: nothing was shown", m.kills)
	}
}

func countPaid(t *testing.T, place string) (rows, keys int) {
	t.Helper()
	pool, err := openPool(place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	if err := pool.QueryRow(`SELECT count(*), count(DISTINCT k) FROM paid`).Scan(&rows, &keys); err != nil {
		t.Fatal(err)
	}
	return rows, keys
}
