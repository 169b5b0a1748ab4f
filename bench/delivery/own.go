package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// store is forbear's store with its pools, as `forbear serve` opens them.
type store struct {
	*sqlstore.DB
	pools []*sql.DB
}

func isPostgres(name string) bool { return strings.HasPrefix(name, "postgres://") }

func openStore(ctx context.Context, name string) (*store, error) {
	s := &store{}
	var err error
	if isPostgres(name) {
		pool, err := sql.Open("pgx", name)
		if err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(16)
		pool.SetMaxIdleConns(8)
		s.pools = []*sql.DB{pool}
		s.DB = sqlstore.Postgres(pool, sqlstore.WithListener(func(ctx context.Context, channel string, wake func(payload string)) error {
			return listen(ctx, name, channel, wake)
		}))
	} else {
		w, r := sqlstore.SQLiteNames(name)
		write, err := sql.Open("sqlite", w)
		if err != nil {
			return nil, err
		}
		write.SetMaxOpenConns(1)
		if err := write.PingContext(ctx); err != nil { // makes the file
			return nil, err
		}
		read, err := sql.Open("sqlite", r)
		if err != nil {
			return nil, err
		}
		read.SetMaxOpenConns(4)
		s.pools = []*sql.DB{write, read}
		s.DB = sqlstore.SQLite(write, read)
	}
	if _, err = s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func listen(ctx context.Context, name, channel string, wake func(payload string)) error {
	conn, err := pgx.Connect(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for wake(""); ; wake("") {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

func (s *store) close() error {
	errs := []error{s.DB.Close()}
	for _, p := range s.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// service is a store with a dispatcher over it.
type service struct {
	*store
	database string
	d        *dispatch.Dispatcher
	stop     context.CancelFunc
	done     chan error
}

// newService opens both, with the endpoint "a": signed, and with as many slots
// as there are senders.
func newService(ctx context.Context, t task, path string) (*service, error) {
	st, err := openStore(ctx, t.Database)
	if err != nil {
		return nil, err
	}
	s := &service{store: st, database: t.Database}
	s.d, err = dispatch.New(dispatch.Config{
		Store: st.Webhooks(), Alerts: st.DeadLetters(), Logger: slog.New(slog.DiscardHandler),
		Guard: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err == nil {
		_, err = s.d.PutEndpoint(ctx, webhook.Endpoint{ID: "a", URL: t.Sink + path, Concurrency: senders, Secrets: []string{webhook.NewSecret()}})
	}
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return s, nil
}

func (s *service) run(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.done = make(chan error, 1)
	go func() { s.done <- s.d.Run(ctx) }()
}

// end stops what run began, if it did, and closes the store.
func (s *service) end() error {
	var err error
	if s.stop != nil {
		s.stop()
		err = <-s.done
	}
	return errors.Join(err, s.close())
}

// delivered waits until n deliveries were made since the service began.
func (s *service) delivered(ctx context.Context, n int) error {
	for s.d.Stats().Delivered < int64(n) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func forbearTask(ctx context.Context, t task) (r report, err error) {
	s, err := newService(ctx, t, "")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	m, err := newMeter("")
	if err != nil {
		return r, err
	}
	if err := s.accept(ctx, t.Messages); err != nil {
		return r, err
	}
	r.Accepted, _ = m.read(t.Messages)
	if m, err = newMeter(t.Profile); err != nil {
		return r, err
	}
	s.run(ctx)
	err = s.delivered(ctx, t.Messages)
	r.Delivered, r.CPU = m.read(t.Messages)
	return r, err
}

// accept sends n messages from the producers, each waiting for its own.
func (s *service) accept(ctx context.Context, n int) error {
	var next atomic.Int64
	errs := make([]error, producers)
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			for int(next.Add(1)) <= n && errs[i] == nil {
				_, errs[i] = s.d.Accept(ctx, webhook.Message{Endpoints: []string{"a"}, Body: body})
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fillTask schedules messages for tomorrow.
func fillTask(ctx context.Context, t task) (r report, err error) {
	s, err := newService(ctx, t, "")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	const group = 500
	for i := 0; i < t.Messages; i += group {
		batch := make([]webhook.Message, min(group, t.Messages-i))
		for k := range batch {
			batch[k] = webhook.Message{Endpoints: []string{"a"}, Body: body, NotBefore: time.Now().Add(24*time.Hour + time.Duration(i+k)*time.Millisecond)}
		}
		if _, err := s.d.Accept(ctx, batch...); err != nil {
			return r, err
		}
	}
	return r, nil
}
