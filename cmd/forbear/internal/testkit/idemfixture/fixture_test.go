package idemfixture

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// Config is what a fixture process is told.
type Config struct {
	Store  string // memory, sqlite, postgres, redis
	DB     string // file or URL
	Ledger string // base URL
	// Offset is how far the host's clock was moved: that of every process.
	Offset time.Duration
	// Skew is how wrong the clock of this process alone is.
	Skew time.Duration
	Knobs
}

// Knobs are the options of the middleware that a scenario may set.
type Knobs struct {
	Lease, Wait, Retention, MaxRun, StoreTimeout time.Duration
	MaxWaiters                                   int
	MaxRequest, MaxResponse                      int64
	Rerun                                        bool
	ReplayHeader                                 string
	KeepHeaders                                  []string
}

func (k *Knobs) options() idempotency.Options {
	return idempotency.Options{
		Scope: principal, Lease: k.Lease, Wait: k.Wait, Retention: k.Retention, MaxRun: k.MaxRun, StoreTimeout: k.StoreTimeout,
		MaxWaiters: k.MaxWaiters, MaxRequest: k.MaxRequest, MaxResponse: k.MaxResponse, Rerun: k.Rerun,
		ReplayHeader: k.ReplayHeader, KeepHeaders: k.KeepHeaders,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// Serve runs the fixture until its standard input ends. It prints its address.
func Serve(c Config) error {
	f := &fixture{Config: c}
	f.offset.Store(int64(c.Offset))
	f.skew.Store(int64(c.Skew))
	store, txns, err := f.open()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	f.admin(mux, store)
	o := c.options()
	plain, err := idempotency.Handler(store, o, http.HandlerFunc(f.handle))
	if err != nil {
		return err
	}
	streamed, exact := o, o
	streamed.Stream, exact.Transaction = true, true
	stream, err := idempotency.Handler(store, streamed, http.HandlerFunc(f.handle))
	if err != nil {
		return err
	}
	mux.Handle("/", authenticated(plain))
	mux.Handle("/stream", authenticated(stream))
	if txns != nil {
		h, err := idempotency.Handler(txns, exact, http.HandlerFunc(f.handle))
		if err != nil {
			return err
		}
		mux.Handle("/pay-tx", authenticated(h))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(l) }()
	fmt.Println("http://" + l.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return srv.Close()
}

type fixture struct {
	Config
	offset, skew atomic.Int64
}

// host is the clock of the machine, which all processes on it share. It is the
// store's, where the store is a file or the process itself.
func (f *fixture) host() time.Time { return time.Now().Add(time.Duration(f.offset.Load())) }

// skewed is what this process takes for the time. A store that is a server has
// a clock of its own and must not care.
func (f *fixture) skewed() time.Time { return f.host().Add(time.Duration(f.skew.Load())) }

func (f *fixture) open() (idempotency.Store, *sqlstore.Transactions, error) {
	ctx := context.Background()
	if f.Store == "memory" {
		return &memstore.Idempotency{Now: f.host}, nil, nil
	}
	if f.Store == "redis" {
		store, err := redisstore.OpenIdempotency(ctx, f.DB, redisstore.IdempotencyOptions{})
		return store, nil, err
	}
	clock := f.host
	if f.Store == "postgres" {
		clock = f.skewed
	}
	db, err := database.Open(ctx, f.DB, sqlstore.WithClock(clock))
	if err != nil {
		return nil, nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return nil, nil, err
	}
	var pool *sql.DB
	switch f.Store {
	case "sqlite":
		write, _ := sqlstore.SQLiteNames(f.DB)
		pool, err = sql.Open("sqlite", write)
	case "postgres":
		pool, err = sql.Open("pgx", f.DB)
	default:
		err = fmt.Errorf("store %q is not known", f.Store)
	}
	if err == nil {
		_, err = pool.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS fixture_effects (principal TEXT NOT NULL)`)
	}
	return db.Idempotency(), db.Transactions(pool), err
}

// admin is how the test moves the clock, sweeps, and counts.
func (f *fixture) admin(mux *http.ServeMux, store idempotency.Store) {
	mux.HandleFunc("POST /_fixture/clock", func(w http.ResponseWriter, r *http.Request) {
		for name, into := range map[string]*atomic.Int64{"offset": &f.offset, "skew": &f.skew} {
			d, err := time.ParseDuration(r.URL.Query().Get(name))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			into.Store(int64(d))
		}
	})
	mux.HandleFunc("POST /_fixture/sweep", func(w http.ResponseWriter, r *http.Request) {
		if _, err := store.Sweep(r.Context(), 1000); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// principal is what the auth layer found.
func principal(r *http.Request) (string, error) {
	if p := r.Header.Get("X-Principal"); p != "" {
		return p, nil
	}
	return "", errors.New("not authenticated")
}

// authenticated is the auth layer.
func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := principal(r); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ask calls the ledger.
func (f *fixture) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.Ledger+path, newReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ledger answers %d", resp.StatusCode)
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
