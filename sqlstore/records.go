package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/gather"
)

// Where each round trip and each commit costs, claims of many records go as one
// statement, and completions as another. No one waits for a batch to fill: it is
// what came while those before it were under way, and what comes alone goes
// alone. Each is a transaction of its own and takes its rows in the order of
// their keys, so that no two batches wait for each other. A caller is told after
// the commit that its own is in.

// records are the batches of one process.
type records struct {
	claims      gather.Batches[*pending[idempotency.Claim, idempotency.Verdict]]
	completions gather.Batches[*pending[completion, struct{}]]
}

// Two batches of a kind are under way at most: while the server syncs one, it
// works on the other.
const (
	recordWidth = 2
	recordBytes = 1 << 20 // of the responses in one batch
)

// open prepares the batches of db.
func (r *records) open(db *DB) {
	r.claims.Width, r.claims.Max = recordWidth, maxGroup
	r.claims.Do = func(batch []*pending[idempotency.Claim, idempotency.Verdict]) {
		work(db, batch, (*tx).claimRecord, (*tx).claimRecords)
	}
	r.completions.Width, r.completions.Max, r.completions.Bytes = recordWidth, maxGroup, recordBytes
	r.completions.Do = func(batch []*pending[completion, struct{}]) {
		work(db, batch, (*tx).completeRecord, (*tx).completeRecords)
	}
}

// pending is a claim or a completion, A, on its way to a result.
type pending[A, R any] struct {
	ctx    context.Context //nolint:containedctx // the caller's, which may leave
	arg    A
	result R
	done   chan error
}

// end tells the caller, if it is still there.
func (p *pending[A, R]) end(result R, err error) {
	p.result = result
	p.done <- err // it has room
}

// ask adds arg to the next batch and waits for its result, or until ctx ends:
// then it may still happen.
func ask[A, R any](ctx context.Context, b *gather.Batches[*pending[A, R]], arg A, size int) (result R, err error) {
	p := &pending[A, R]{ctx: ctx, arg: arg, done: make(chan error, 1)}
	b.Add(p, size)
	select {
	case err := <-p.done:
		return p.result, err
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}

// work does a batch. all ends those that it can and returns the others, which are
// done one by one: because they need more than one statement, or because the
// statement of all was refused and rolled back, which one of them alone may have
// to answer for.
func work[A, R any](db *DB, batch []*pending[A, R], one func(*tx, A) (R, error), all func(*tx, []*pending[A, R]) ([]*pending[A, R], error)) {
	var left []*pending[A, R]
	for _, p := range batch {
		if p.ctx.Err() == nil { // who has left before claims nothing
			left = append(left, p)
		}
	}
	alone := func(p *pending[A, R]) {
		p.end(single(p.ctx, db, func(t *tx) (R, error) { return one(t, p.arg) }))
	}
	switch len(left) {
	case 0:
		return
	case 1:
		alone(left[0])
		return
	}
	ctx, cancel := lasting(left)
	defer cancel()
	var err error
	begun := false
	for range 2 { // a connection of the pool may have died long ago
		err = db.d.single(ctx, db, func(t *tx) (err error) {
			begun = true
			left, err = all(t, left)
			return err
		})
		if !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	for _, p := range left {
		if err == nil || begun && db.d.refused(err) {
			go alone(p)
		} else {
			var none R
			p.end(none, err)
		}
	}
}

// lasting returns a context that ends when the last of the callers would leave,
// and with groupTimeout.
func lasting[A, R any](batch []*pending[A, R]) (context.Context, context.CancelFunc) {
	end, latest := time.Now().Add(groupTimeout), time.Time{}
	for _, p := range batch {
		d, ok := p.ctx.Deadline()
		if !ok {
			d = end
		}
		if d.After(latest) {
			latest = d
		}
	}
	if latest.After(end) {
		latest = end
	}
	return context.WithDeadline(context.Background(), latest)
}

// whole reports whether JSON carries texts as they are: what is no UTF-8 would
// become something else.
func whole(texts ...string) bool {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// completion is the end of a claim with a response. Its JSON is one row of a
// batch.
type completion struct {
	N         int    `json:"n"`
	Scope     string `json:"s"`
	Hash      string `json:"h"`
	Owner     string `json:"w"`
	Fence     int64  `json:"f"`
	Status    int    `json:"status"`
	Header    string `json:"header"`
	Body      []byte `json:"body"`
	Tombstone string `json:"tombstone"`
	Retention int64  `json:"e"` // in microseconds
}

// completeRecord writes one completion.
func (t *tx) completeRecord(c completion) (struct{}, error) {
	k := idempotency.Token{ID: idempotency.ID{Scope: c.Scope, Key: c.Hash}, Owner: c.Owner, Fence: c.Fence}
	return struct{}{}, t.updateHeld(k, setCompleted, c.Status, c.Header, c.Body, c.Tombstone, after(0), after(time.Duration(c.Retention)*time.Microsecond))
}
