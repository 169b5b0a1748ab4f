package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// swept measures what it costs to drop old history beside a steady load, and
// whether its place is reused: generation after generation comes, all of it as old
// as it can be, and goes.
func (b *bench) swept(ctx context.Context, kind string) error {
	if kind != "postgres" {
		return nil
	}
	list, err := b.contenders(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Printf("\n### Generations of %d finished messages that are swept, at %d messages a second\n\n", b.history, steady)
	fmt.Println("| build, settings | generation | sweep s | swept/s | p50 ms before, meanwhile | p99 ms before, meanwhile | MiB filled | MiB swept | dead rows then | PostgreSQL CPU us of a row |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, c := range list {
		for _, defaults := range []bool{true, false} {
			if err := b.generations(ctx, c, defaults); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}

// generations lets history come and go, with PostgreSQL's settings of autovacuum
// or with those of the migrations.
func (b *bench) generations(ctx context.Context, c contender, defaults bool) (err error) {
	name, remove, err := b.database(ctx, "postgres")
	if err != nil {
		return err
	}
	defer remove()
	f, err := b.startFleet(ctx, c.binary, name, 1)
	if err != nil {
		return err
	}
	if err := f.stop(); err != nil {
		return err
	}
	db, err := b.pg.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	label := strings.TrimSuffix(c.name, ", 1") + ", the migrations'"
	if defaults {
		label = strings.TrimSuffix(c.name, ", 1") + ", PostgreSQL's"
		if _, err := db.ExecContext(ctx, resetVacuum); err != nil {
			return err
		}
	}
	for g := range b.rounds {
		if _, err := db.ExecContext(ctx, fillHistory, g, b.history); err != nil {
			return err
		}
		// What the filling left to write is not the sweep's.
		if _, err := db.ExecContext(ctx, `CHECKPOINT`); err != nil {
			return err
		}
		before, err := b.size(ctx, name)
		if err != nil {
			return err
		}
		if err := b.generation(ctx, c, name, label, g, before); err != nil {
			return err
		}
	}
	return nil
}

// generation sweeps one generation beside a load, and prints how it went.
func (b *bench) generation(ctx context.Context, c contender, name, label string, g int, filled float64) (err error) {
	db, err := b.pg.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// What a call takes without sweeps, while their lock is held.
	hold, err := db.BeginTx(ctx, nil)
	if err == nil {
		_, err = hold.ExecContext(ctx, `SELECT pg_advisory_xact_lock(x'666f7262'::int, 65)`)
	}
	if err != nil {
		return err
	}
	alone, idle, err := b.beside(ctx, c, name, b.length, nil)
	if err := errors.Join(err, hold.Rollback()); err != nil {
		return err
	}
	// A process sweeps when it starts.
	began := time.Now()
	beside, busy, err := b.beside(ctx, c, name, time.Hour, func(ctx context.Context) error {
		for left := 1; left > 0; time.Sleep(200 * time.Millisecond) {
			if err := db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT FROM forbear_deliveries WHERE finished < 1000000000000000 LIMIT 1) x`).Scan(&left); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	size, err := b.size(ctx, name)
	if err != nil {
		return err
	}
	var dead int
	if err := db.QueryRowContext(ctx, `SELECT sum(n_dead_tup) FROM pg_stat_user_tables`).Scan(&dead); err != nil {
		return err
	}
	fmt.Printf("| %s | %d | %.0f | %.0f | %.1f, %.1f | %.0f, %.0f | %.0f | %.0f | %d | %.0f |\n", label, g+1, took.Seconds(), float64(b.history)/took.Seconds(),
		at(alone, 0.5), at(beside, 0.5), at(alone, 0.99), at(beside, 0.99), filled, size, dead, (busy-idle)*took.Seconds()*1e6/float64(b.history))
	return nil
}

// beside lets one process work at the steady rate until a condition holds, or for a
// time, and returns how long the calls took and how many processors PostgreSQL.
func (b *bench) beside(ctx context.Context, c contender, name string, length time.Duration, until func(context.Context) error) (took []time.Duration, busy float64, err error) {
	f, err := b.startFleet(ctx, c.binary, name, 1)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	limited, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		if until == nil {
			ended <- nil
			return
		}
		defer cancel()
		ended <- until(ctx)
	}()
	used, began := treeTime(b.pg.PID()), time.Now()
	took, err = f.produce(limited, callers, steady)
	busy = (treeTime(b.pg.PID()) - used).Seconds() / time.Since(began).Seconds()
	return took, busy, errors.Join(err, <-ended)
}

// at returns the milliseconds that a part of the calls took at most.
func at(took []time.Duration, part float64) float64 {
	return took[int(part*float64(len(took)-1))].Seconds() * 1000
}

// size is the size of a database in MiB.
func (b *bench) size(ctx context.Context, url string) (mib float64, err error) {
	name := url[strings.LastIndexByte(url, '/')+1:]
	name, _, _ = strings.Cut(name, "?")
	err = b.pg.DB().QueryRowContext(ctx, `SELECT pg_database_size($1::text::name)::float8 / 1048576`, name).Scan(&mib)
	return mib, err
}

// fillHistory adds finished messages of long ago, each with an attempt.
const fillHistory = `WITH m AS (INSERT INTO forbear_messages (meta, body, created)
		SELECT '', convert_to(repeat('x', 1024), 'UTF8'), 1 FROM generate_series(1, $2::int) RETURNING seq),
	d AS (INSERT INTO forbear_deliveries (message, message_id, endpoint, state, due, start, fence, claims, finished)
		SELECT seq, 'old-' || $1::int || '-' || seq, 'a', 2, seq, seq, 1, 1, seq FROM m RETURNING id)
	INSERT INTO forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker)
		SELECT id, 1, 1, 1, 1, 1, 0, '', 200, 'host-name-12345-abcdef' FROM d`

const resetVacuum = `ALTER TABLE forbear_deliveries RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_limit);
	ALTER TABLE forbear_messages RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_limit);
	ALTER TABLE forbear_attempts RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_limit)`
