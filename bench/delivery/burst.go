package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/forbear-go/forbear/pgxoutbox"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// burst compares what an application inserts in one transaction of its own, and says
// what the relay and the deliveries then make of it.
func (b *bench) burst(ctx context.Context, kind string) error {
	contenders := []string{"burst-sql"}
	if kind == "postgres" {
		contenders = append(contenders, "burst-pgx", "burst-river", "burst-river-fast")
	}
	seen := map[string][]report{}
	for range b.rounds {
		for _, c := range contenders {
			r, err := b.fresh(ctx, kind, task{Kind: c, Messages: b.inserted})
			if err != nil {
				return err
			}
			seen[c] = append(seen[c], r)
		}
	}
	fmt.Printf("\n### %d rows in one transaction: %s\n\n", b.inserted, titles[kind])
	fmt.Println("| | inserted/s (lowest to highest) | CPU us for a row | relayed/s | delivered/s |")
	fmt.Println("|---|--:|--:|--:|--:|")
	for _, c := range contenders {
		in, low, high := median(collect(seen[c], func(r report) float64 { return r.Accepted }))
		cpu, _, _ := median(collect(seen[c], func(r report) float64 { return r.CPU }))
		relayed, _, _ := median(collect(seen[c], func(r report) float64 { return r.Relayed }))
		out, _, _ := median(collect(seen[c], func(r report) float64 { return r.Delivered }))
		fmt.Printf("| %s | %.0f (%.0f to %.0f) | %.0f | %.0f | %.0f |\n", titles[c], in, low, high, cpu, relayed, out)
	}
	if kind == "postgres" {
		fmt.Printf("\npgxoutbox against River's InsertManyFastTx: %s.\n", ratio(seen["burst-pgx"], seen["burst-river-fast"], func(r report) float64 { return r.Accepted }))
	}
	return nil
}

// burstTask inserts all messages in one transaction, relays them with nothing else
// going on, and delivers them.
func burstTask(ctx context.Context, t task) (r report, err error) {
	s, err := newService(ctx, t, "")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	msgs := make([]webhook.Message, t.Messages)
	for i := range msgs {
		msgs[i] = webhook.Message{Endpoints: []string{"a"}, Type: "order.shipped", Body: body}
	}
	insert := s.insertSQL
	if t.Kind == "burst-pgx" {
		insert = func(ctx context.Context, m *meter, msgs []webhook.Message) error {
			return insertPgx(ctx, t.Database, m, msgs)
		}
	}
	var m meter
	if err := insert(ctx, &m, msgs); err != nil {
		return r, err
	}
	r.Accepted, r.CPU = m.read(t.Messages)
	if m, err = newMeter(t.Profile); err != nil {
		return r, err
	}
	for n := 0; n < t.Messages; {
		done, err := s.Webhooks().Relay(ctx, 500, func(m *webhook.Message) (map[string]bool, error) { return nil, m.Prepare(time.Now()) })
		if err != nil || done.Rows == 0 {
			return r, fmt.Errorf("relayed %d of %d: %w", n, t.Messages, err)
		}
		n += done.Accepted
	}
	r.Relayed, _ = m.read(t.Messages)
	if m, err = newMeter(""); err != nil {
		return r, err
	}
	s.run(ctx)
	err = s.delivered(ctx, t.Messages)
	r.Delivered, _ = m.read(t.Messages)
	return r, err
}

// insertSQL inserts by database/sql.
func (s *service) insertSQL(ctx context.Context, m *meter, msgs []webhook.Message) (err error) {
	name := s.database
	driver := "pgx"
	if !isPostgres(name) {
		driver = "sqlite"
		name, _ = sqlstore.SQLiteNames(name)
	}
	pool, err := sql.Open(driver, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := pool.PingContext(ctx); err != nil {
		return err
	}
	if *m, err = newMeter(""); err != nil {
		return err
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := (webhook.Outbox{SQLite: driver == "sqlite"}).Insert(ctx, tx, msgs...); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// insertPgx inserts by COPY.
func insertPgx(ctx context.Context, name string, m *meter, msgs []webhook.Message) error {
	conn, err := pgx.Connect(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if *m, err = newMeter(""); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := pgxoutbox.Outbox{}.Insert(ctx, tx, msgs...)
		return err
	})
}

// burstRiverTask inserts as many jobs of River's in one transaction. They are not
// worked: throughput measures that.
func burstRiverTask(ctx context.Context, t task) (r report, err error) {
	pool, err := pgxpool.New(ctx, t.Database)
	if err != nil {
		return r, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return r, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return r, err
	}
	client, err := river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler)}) // it inserts only
	if err != nil {
		return r, err
	}
	params := make([]river.InsertManyParams, t.Messages)
	for i := range params {
		params[i].Args = riverJob{string(body)}
	}
	m, err := newMeter("")
	if err != nil {
		return r, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if t.Kind == "burst-river-fast" {
			_, err := client.InsertManyFastTx(ctx, tx, params)
			return err
		}
		_, err := client.InsertManyTx(ctx, tx, params)
		return err
	})
	r.Accepted, r.CPU = m.read(t.Messages)
	return r, err
}
