package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"
	fiberkeys "github.com/gofiber/fiber/v3/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// The names of what others are compared with.
const (
	bareHandler = "bare net/http handler"
	fiberFresh  = "Fiber, Redis, fresh key"
	fiberReplay = "Fiber, Redis, replay"
)

const reply = `{"id":"pay_4711","amount":100,"currency":"USD","status":"accepted","account":"de-2201-77"}`

// pay is the handler behind all middlewares.
func pay(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, reply)
}

// contenders are the rows, in the order of the table.
func (s *servers) contenders(ctx context.Context, o options) ([]*contender, error) {
	sqlite, err := s.sqlite(ctx)
	if err != nil {
		return nil, err
	}
	pg, err := s.postgres(ctx)
	if err != nil {
		return nil, err
	}
	memory := func() (idempotency.Store, *client, error) { return &memstore.Idempotency{}, nil, nil }
	onSQLite := func() (idempotency.Store, *client, error) { return sqlite.store, nil, nil }
	onPostgres := func() (idempotency.Store, *client, error) { return pg.store, nil, nil }
	all := []*contender{
		{name: bareHandler, open: web(http.HandlerFunc(pay))},
		{name: "**forbear**, memory, fresh key", against: bareHandler, limit: 0.7, open: keyed(memory, true)},
		{name: "**forbear**, memory, replay", against: bareHandler, limit: 0.8, open: keyed(memory, false)},
		{name: "Fiber, memory, fresh key", against: bareHandler, open: s.fiber(false, true)},
		{name: "Fiber, memory, replay", against: bareHandler, open: s.fiber(false, false)},
		{name: fiberFresh, against: bareHandler, open: s.fiber(true, true)},
		{name: "**forbear**, Redis, fresh key", against: fiberFresh, limit: 0.6, open: keyed(s.redis.store, true)},
		{name: fiberReplay, against: bareHandler, open: s.fiber(true, false)},
		{name: "**forbear**, Redis, replay", against: fiberReplay, open: keyed(s.redis.store, false)},
		{name: "**forbear**, SQLite, fresh key", against: bareHandler, open: keyed(onSQLite, true)},
		{name: "**forbear**, SQLite, replay", against: bareHandler, open: keyed(onSQLite, false)},
		{name: "**forbear**, PostgreSQL, fresh key", against: bareHandler, open: keyed(onPostgres, true)},
		{name: "**forbear**, PostgreSQL, replay", against: bareHandler, open: keyed(onPostgres, false)},
		{name: "bare pairs, SQLite", open: sqlite.barePairs()},
		{name: "**forbear** pairs, SQLite", against: "bare pairs, SQLite", limit: 0.7, open: sqlite.pairs()},
		{name: "bare pairs, PostgreSQL", open: pg.barePairs()},
		{name: "**forbear** pairs, PostgreSQL", against: "bare pairs, PostgreSQL", limit: 0.7, open: pg.pairs()},
		{name: "**forbear** events, memory", open: events(memory)},
		{name: "**forbear** events, SQLite", against: "bare pairs, SQLite", open: events(onSQLite)},
		{name: "**forbear** events, PostgreSQL", against: "bare pairs, PostgreSQL", open: events(onPostgres)},
		{name: "**forbear** events, Redis that syncs each write", open: events(s.synced.store)},
	}
	if o.only == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, c := range all {
		if strings.Contains(c.name, o.only) {
			wanted[c.name], wanted[c.against] = true, true
		}
	}
	var list []*contender
	for _, c := range all {
		if wanted[c.name] {
			list = append(list, c)
		}
	}
	return list, nil
}

// loopback listens for one turn.
func loopback() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// serve serves h and loads it for a turn.
func serve(h http.Handler, conns int, fresh bool, c *client) (work, error) {
	l, err := loopback()
	if err != nil {
		return work{}, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	return work{
		do: func(ctx context.Context, end time.Time) ([]time.Duration, error) {
			return post(ctx, l.Addr().String(), conns, end, fresh)
		},
		redis: c,
		close: func() { _ = srv.Close(); c.close() },
	}, nil
}

func web(h http.Handler) func(context.Context, int) (work, error) {
	return func(_ context.Context, conns int) (work, error) { return serve(h, conns, true, nil) }
}

// keyed is forbear's middleware on a store, with the defaults of production.
func keyed(open func() (idempotency.Store, *client, error), fresh bool) func(context.Context, int) (work, error) {
	return func(_ context.Context, conns int) (work, error) {
		store, c, err := open()
		if err != nil {
			return work{}, err
		}
		h, err := idempotency.Handler(store, idempotency.Options{
			Scope: func(*http.Request) (string, error) { return "tenant-7", nil }, Logger: slog.New(slog.DiscardHandler),
		}, http.HandlerFunc(pay))
		if err != nil {
			return work{}, err
		}
		return serve(h, conns, fresh, c)
	}
}

func (s server) store() (idempotency.Store, *client, error) {
	c, err := s.client()
	if err != nil {
		return nil, nil, err
	}
	store, err := redisstore.NewIdempotency(context.Background(), c, redisstore.IdempotencyOptions{Logger: slog.New(slog.DiscardHandler)})
	return store, c, err
}

// fiber is Fiber with its own middleware, which knows keys of 36 characters.
func (s *servers) fiber(onRedis, fresh bool) func(context.Context, int) (work, error) {
	return func(_ context.Context, conns int) (work, error) {
		config := fiberkeys.Config{KeyHeader: "Idempotency-Key", Lifetime: 48 * time.Hour}
		var c *client
		if onRedis {
			var err error
			if c, err = s.redis.client(); err != nil {
				return work{}, err
			}
			config.Storage = fiberredis.NewFromConnection(c)
		}
		app := fiber.New()
		app.Use(fiberkeys.New(config))
		app.Post("/pay", func(c fiber.Ctx) error {
			c.Set("Content-Type", "application/json")
			return c.Status(fiber.StatusCreated).SendString(reply)
		})
		l, err := loopback()
		if err != nil {
			return work{}, err
		}
		go func() { _ = app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }()
		return work{
			do: func(ctx context.Context, end time.Time) ([]time.Duration, error) {
				return post(ctx, l.Addr().String(), conns, end, fresh)
			},
			redis: c,
			close: func() {
				defer c.close()
				if err := app.ShutdownWithTimeout(time.Second); err != nil {
					fmt.Println("Fiber:", err)
				}
			},
		}, nil
	}
}
