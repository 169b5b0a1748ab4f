package sqlstore

import (
	"cmp"
	"context"
	"database/sql/driver"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// groupTimeout bounds one transaction: a server that does not respond must not
// hold up the writer for good.
const groupTimeout = 30 * time.Second

// connectionAge is how long a writer keeps a connection at most.
const connectionAge = 5 * time.Minute

// session keeps PostgreSQL from reading whole tables. It cannot know that a
// claim finds a handful of rows, and joins what it believes to be thousands
// with a table of a million by reading all of it. Where there is no other way,
// its estimate is so high that it would compile the statement, which takes
// longer than any of ours. And it ends the transaction of a process that was
// frozen in the middle of one, whose locks would hold up all others.
//
// It is used for a while only: what it leads to may have stopped being the primary
// without a word, and only new connections find the one that is.
func (postgres) session(_ context.Context, t *tx) error {
	t.until = time.Now().Add(wait.Jitter(connectionAge/2) + connectionAge/2)
	return t.execOnce(`SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
		SET idle_in_transaction_session_timeout = '10s'; SET default_transaction_isolation = 'read committed'`)
}

// alone lets those share that accept. Others lock rows of their own choice, letters and jobs
// and endpoints: two groups with the same two in another order would wait for each other.
// What needs no transaction is quicker without the others, too.
func (postgres) alone(o *op) bool { return o.accept == nil }

// bare is the way of nearly all accepting, claiming and writing back: one round trip
// instead of the three that a transaction takes at least, and no lock is held
// while the server waits for this process. What accepts several deliveries may
// have to take some of them back, and what has keys holds their locks.
func (postgres) bare(group []*op) bool {
	if len(group) == 1 && group[0].apart {
		return true
	}
	for _, o := range group {
		if o.accept == nil || o.keys != 0 || len(o.accept.rows) != 1 || len(o.accept.rows[0].Endpoints) != 1 {
			return false
		}
	}
	return len(group) <= maxRows
}

// bounded ends a transaction whose server does not respond. A migration, which is
// always alone, sets a limit of its own.
func (postgres) bounded(group []*op) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cmp.Or(group[0].limit, groupTimeout))
}

// unsynced changes nothing: the database outlives the machine that writes, and
// its fsync is not ours to save.
func (postgres) unsynced(*writer, []*op) func(*error) { return func(*error) {} }

// single takes a connection of the pool. The server groups commits, and a group
// of ours would lock many records in any order.
func (postgres) single(ctx context.Context, db *DB, f func(t *tx) error) error {
	release, err := db.slots.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	conn, err := db.reads.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	err = f(&tx{ctx: ctx, db: db, conn: conn})
	if db.says(err, elsewhere) { // not back to the pool
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}
