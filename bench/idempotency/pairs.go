package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
)

const (
	lease     = 30 * time.Second
	retention = 48 * time.Hour
)

// base is a database with forbear's records and, beside them, a table of the
// least that a claim and its completion can be.
type base struct {
	store idempotency.Store
	claim func(ctx context.Context, key string) error // the bare ones
	end   func(ctx context.Context, key string) error
}

const bareTable = `CREATE TABLE bare_keys (
	scope TEXT NOT NULL, hash TEXT NOT NULL, fingerprint TEXT NOT NULL, owner TEXT NOT NULL, state INTEGER NOT NULL, lease BIGINT NOT NULL,
	expires BIGINT NOT NULL, status INTEGER, header TEXT, body %s, PRIMARY KEY (scope, hash))`

// The bare pair: as many values as forbear stores, and no questions asked.
const (
	bareClaim = `INSERT INTO bare_keys (scope, hash, fingerprint, owner, state, lease, expires) VALUES ('tenant-7', $1, $2, $3, 1, $4, $5) ON CONFLICT DO NOTHING`
	bareEnd   = `UPDATE bare_keys SET state = 2, status = 201, header = $1, body = $2, expires = $3 WHERE scope = 'tenant-7' AND hash = $4 AND owner = $5 AND state = 1`
)

var header = map[string][]string{"Content-Type": {"application/json"}}

const headerText = `{"Content-Type":["application/json"]}`

func claimArgs(key string) []any {
	now := time.Now()
	return []any{key, "fingerprint-of-43-characters-as-a-digest-is", "owner-of-" + key, now.Add(lease).UnixMicro(), now.Add(lease + retention).UnixMicro()}
}

func endArgs(key string) []any {
	return []any{headerText, []byte(reply), time.Now().Add(retention).UnixMicro(), key, "owner-of-" + key}
}

func (s *servers) postgres(ctx context.Context) (*base, error) {
	url, err := s.pg.Create(ctx, "keys")
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, pool.Close)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(16)
	store := sqlstore.Postgres(pool)
	if _, err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	if _, err := pool.ExecContext(ctx, fmt.Sprintf(bareTable, "BYTEA")); err != nil {
		return nil, err
	}
	b := &base{store: store.Idempotency()}
	b.claim = func(ctx context.Context, key string) error {
		return affected(pool.ExecContext(ctx, bareClaim, claimArgs(key)...))
	}
	b.end = func(ctx context.Context, key string) error {
		return affected(pool.ExecContext(ctx, bareEnd, endArgs(key)...))
	}
	return b, nil
}

func affected(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("%d rows, want 1", n))
	}
	return nil
}

func (s *servers) sqlite(ctx context.Context) (*base, error) {
	file := filepath.Join(s.dir, "forbear.db")
	writeName, readName := sqlstore.SQLiteNames(file)
	write, err1 := sql.Open("sqlite", writeName)
	read, err2 := sql.Open("sqlite", readName)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, write.Close, read.Close)
	write.SetMaxOpenConns(1)
	store := sqlstore.SQLite(write, read)
	if _, err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	bareName, _ := sqlstore.SQLiteNames(filepath.Join(s.dir, "bare.db"))
	g, err := newGroup(ctx, bareName)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, g.close)
	return &base{
		store: store.Idempotency(),
		claim: func(_ context.Context, key string) error { return g.do(true, claimArgs(key)) },
		end:   func(_ context.Context, key string) error { return g.do(false, endArgs(key)) },
	}, nil
}

// group is a bare group commit: one connection, one transaction for as many
// statements as are at hand.
type group struct {
	db         *sql.DB
	conn       *sql.Conn
	claim, end *sql.Stmt
	in         chan statement
	done       chan struct{}
}

type statement struct {
	claim bool
	args  []any
	err   chan error
}

func newGroup(ctx context.Context, name string) (*group, error) {
	g := &group{in: make(chan statement, 256), done: make(chan struct{})}
	var err error
	if g.db, err = sql.Open("sqlite", name); err != nil {
		return nil, err
	}
	if g.conn, err = g.db.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err = g.conn.ExecContext(ctx, fmt.Sprintf(bareTable, "BLOB")); err != nil {
		return nil, err
	}
	if g.claim, err = g.conn.PrepareContext(ctx, bareClaim); err != nil {
		return nil, err
	}
	if g.end, err = g.conn.PrepareContext(ctx, bareEnd); err != nil {
		return nil, err
	}
	go g.run(context.WithoutCancel(ctx))
	return g, nil
}

func (g *group) close() error {
	close(g.in)
	<-g.done
	return errors.Join(g.conn.Close(), g.db.Close())
}

func (g *group) do(claim bool, args []any) error {
	s := statement{claim, args, make(chan error, 1)}
	g.in <- s
	return <-s.err
}

func (g *group) run(ctx context.Context) {
	defer close(g.done)
	var batch []statement
	for s := range g.in {
		batch = append(batch[:0], s)
		for len(g.in) > 0 && len(batch) < 256 {
			batch = append(batch, <-g.in)
		}
		err := g.commit(ctx, batch)
		for _, s := range batch {
			s.err <- err
		}
	}
}

func (g *group) commit(ctx context.Context, batch []statement) error {
	if _, err := g.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, s := range batch {
		st := g.end
		if s.claim {
			st = g.claim
		}
		if err := affected(st.ExecContext(ctx, s.args...)); err != nil {
			return err
		}
	}
	_, err := g.conn.ExecContext(ctx, "COMMIT")
	return err
}

// loop does pairs with as many goroutines as there are connections.
func loop(conns int, pair func(ctx context.Context, key string) error) work {
	return work{
		do: func(ctx context.Context, end time.Time) ([]time.Duration, error) {
			return parallel(conns, func() (took []time.Duration, err error) {
				key := make([]byte, 36)
				for time.Now().Before(end) && ctx.Err() == nil {
					freshKey(key)
					begun := time.Now()
					if err := pair(ctx, string(key)); err != nil {
						return took, err
					}
					took = append(took, time.Since(begun))
				}
				return took, nil
			})
		},
		close: func() {},
	}
}

func (b *base) barePairs() func(context.Context, int) (work, error) {
	return func(_ context.Context, conns int) (work, error) {
		return loop(conns, func(ctx context.Context, key string) error {
			if err := b.claim(ctx, key); err != nil {
				return err
			}
			return b.end(ctx, key)
		}), nil
	}
}

func (b *base) pairs() func(context.Context, int) (work, error) {
	return func(_ context.Context, conns int) (work, error) {
		return loop(conns, func(ctx context.Context, key string) error {
			c := idempotency.Claim{
				ID:          idempotency.ID{Scope: "tenant-7", Key: key},
				Fingerprint: "fingerprint-of-43-characters-as-a-digest-is", Operation: "POST /pay", Owner: "owner-of-" + key, Lease: lease, Retention: retention,
			}
			v, err := b.store.Claim(ctx, c)
			if err != nil {
				return err
			}
			if v.Outcome != idempotency.Acquired {
				return fmt.Errorf("outcome %d of a fresh key", v.Outcome)
			}
			a := idempotency.Response{Status: 201, Header: header, Body: []byte(reply)}
			return b.store.Complete(ctx, idempotency.Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}, a, retention)
		}), nil
	}
}
