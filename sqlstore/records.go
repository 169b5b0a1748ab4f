package sqlstore

import (
	"database/sql/driver"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/gather"
)

// Where each round trip and each commit costs, on PostgreSQL, claims of many records go as
// one statement, and completions as another: SQLite's group commit is a batch already. No one waits for a batch to fill: it is
// what came while those before it were under way, and what comes alone goes
// alone. Each is a transaction of its own and takes its rows in the order of
// their keys, so that no two batches wait for each other. A caller is told after
// the commit that its own is in.

// records are the batches of one process. The zero value has none.
type records struct {
	claims      gather.Calls[idempotency.Claim, idempotency.Verdict]
	completions gather.Calls[completion, struct{}]
}

type (
	claiming   = gather.Call[idempotency.Claim, idempotency.Verdict]
	completing = gather.Call[completion, struct{}]
)

// Two batches of a kind are under way at most: while the server syncs one, it
// works on the other.
const (
	recordWidth = 2
	recordBytes = 1 << 20 // of the responses in one batch
)

// open prepares the batches of db.
func (r *records) open(db *DB) {
	r.claims.Width, r.claims.Max = recordWidth, maxGroup
	r.claims.Do = func(batch []*claiming) {
		work(db, batch, (*tx).claimRecord, (*tx).claimRecords)
	}
	r.completions.Width, r.completions.Max, r.completions.Bytes = recordWidth, maxGroup, recordBytes
	r.completions.Do = func(batch []*completing) {
		work(db, batch, (*tx).completeRecord, (*tx).completeRecords)
	}
}

// work does a batch. all ends those that it can and returns the others, which are
// done one by one: because they need more than one statement, or because the
// statement of all was refused and rolled back, which one of them alone may have
// to answer for.
func work[A, R any](db *DB, batch []*gather.Call[A, R], one func(*tx, A) (R, error), all func(*tx, []*gather.Call[A, R]) ([]*gather.Call[A, R], error)) {
	left := gather.Present(batch) // who has left claims nothing
	alone := func(c *gather.Call[A, R]) {
		c.End(single(c.Ctx, db, func(t *tx) (R, error) { return one(t, c.Arg) }))
	}
	switch len(left) {
	case 0:
		return
	case 1:
		alone(left[0])
		return
	}
	ctx, cancel := gather.Lasting(left, groupTimeout)
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
	for _, c := range left {
		if err == nil || begun && db.says(err, refused) {
			go alone(c)
		} else {
			var none R
			c.End(none, err)
		}
	}
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
