package sqlstore

import (
	"database/sql"
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

// A row that someone else holds must not hold up a whole batch: it is refused
// soon, and done one by one.
const batchPatience = `p AS MATERIALIZED (SELECT set_config('lock_timeout', '100ms', true))`

// claimRow is the JSON of one claim.
type claimRow struct {
	Scope       string `json:"s"`
	Hash        string `json:"h"`
	Fingerprint string `json:"f"`
	Operation   string `json:"o"`
	Rerun       int    `json:"r"`
	Owner       string `json:"w"`
	Lease       int64  `json:"l"` // in microseconds, as Expires
	Expires     int64  `json:"e"`
}

// claimRecords grants what can be granted in one statement, the one of
// insertClaim, and reads in another why the rest is not.
func (t *tx) claimRecords(batch []*claiming) (left []*claiming, err error) {
	first := make(map[idempotency.ID]*claiming, len(batch))
	rows := make([]claimRow, 0, len(batch))
	for _, p := range batch {
		c := p.Arg
		if first[c.ID] != nil {
			continue // a duplicate: the first one has it
		}
		first[c.ID] = p
		row := claimRow{c.ID.Scope, c.ID.Key, c.Fingerprint, c.Operation, 0, c.Owner, c.Lease.Microseconds(), (c.Lease + c.Retention).Microseconds()}
		if c.Rerun {
			row.Rerun = 1
		}
		rows = append(rows, row)
	}
	granted := make(map[*claiming]idempotency.Verdict, len(rows))
	err = t.each(func(r *sql.Rows) error {
		var id idempotency.ID
		var fence, lease, created, expires int64
		var attempt int
		if err := r.Scan(&id.Scope, &id.Key, &fence, &attempt, &lease, &created, &expires); err != nil {
			return err
		}
		p := first[id]
		c := p.Arg
		granted[p] = idempotency.Verdict{Outcome: idempotency.Acquired, LeaseLeft: c.Lease, Record: idempotency.Record{
			ID: c.ID, Fingerprint: c.Fingerprint, Operation: c.Operation, State: idempotency.Started, Rerun: c.Rerun, Owner: c.Owner,
			Fence: fence, Attempt: attempt, LeaseEnd: at(lease), Created: at(created), Expires: at(expires),
		}}
		return nil
	}, `WITH `+batchPatience+`, x AS MATERIALIZED (SELECT x.* FROM p, json_to_recordset(?::json) AS x(s text, h text, f text, o text, r smallint, w text, l bigint, e bigint) ORDER BY s, h)
		INSERT INTO forbear_idempotency AS r (scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, expires, written)
		SELECT s, h, f, o, `+string(keyStarted)+`, x.r, w, 1, 1, {now} + l, {now}, {now} + e, {now} FROM x `+claimConflict+`
		RETURNING scope, hash, fence, attempt, lease, created, expires`,
		asJSON{rows}, after(0), after(0), after(0), after(0), after(0), after(0), after(0), after(0))
	if err != nil {
		return batch, err
	}
	for _, p := range batch {
		v, ok := granted[p]
		switch {
		case !ok:
			left = append(left, p)
		case !p.End(v, nil):
			// The caller left meanwhile: no run would begin under this claim. When
			// this fails it ends with its lease.
			_ = t.updateHeld(idempotency.Token{ID: p.Arg.ID, Owner: p.Arg.Owner}, setReleased)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return t.judgeClaims(left)
}

// judgeClaims ends the claims that are not granted by what the records say. Those
// that have to be written, or asked again, are left.
func (t *tx) judgeClaims(batch []*claiming) (left []*claiming, err error) {
	var keys []ordering
	known := map[idempotency.ID]*idempotency.Record{}
	for _, p := range batch {
		if _, ok := known[p.Arg.ID]; !ok {
			known[p.Arg.ID] = nil
			keys = append(keys, ordering{p.Arg.ID.Scope, p.Arg.ID.Key})
		}
	}
	var us int64
	err = t.each(func(r *sql.Rows) error {
		rec, err := t.db.scanWhole(r, &us)
		known[rec.ID] = &rec
		return err
	}, `SELECT `+recordColumns+`, body, {now} FROM forbear_idempotency WHERE (scope, hash) IN (SELECT x.e, x.k FROM {keys})`, after(0), asJSON{keys})
	if err != nil {
		return batch, err
	}
	for _, p := range batch {
		rec := known[p.Arg.ID]
		if rec == nil { // swept in between
			left = append(left, p)
			continue
		}
		next, outcome := p.Arg.Against(rec, at(us))
		if outcome == idempotency.Acquired || outcome == idempotency.Unknown && rec.State != idempotency.Held {
			left = append(left, p)
			continue
		}
		p.End(idempotency.Verdict{Outcome: outcome, Record: next, LeaseLeft: max(next.LeaseEnd.Sub(at(us)), 0)}, nil)
	}
	return left, nil
}

// completeRecords writes the completions whose claims still hold.
func (t *tx) completeRecords(batch []*completing) ([]*completing, error) {
	rows := make([]completion, len(batch))
	for i, p := range batch {
		rows[i] = p.Arg
		rows[i].N = i
	}
	written := make([]bool, len(batch))
	// The rows are to be found by their keys. The sum keeps the planner from the partial
	// index on those that are taken, which it believes to be short and reads whole, with
	// the thousands that were taken a moment ago. And of a filter that lets all through
	// it believes that it leaves one row, for which it reads no table.
	err := t.each(func(r *sql.Rows) error {
		n, err := one[int](r)
		if err == nil {
			written[n] = true
		}
		return err
	}, `WITH `+batchPatience+`, x AS MATERIALIZED (SELECT x.* FROM p, json_to_recordset(?::json)
			AS x(n int, s text, h text, w text, f bigint, status int, header text, body text, tombstone text, e bigint) WHERE n = n + 0 ORDER BY s, h)
		UPDATE forbear_idempotency r SET `+recordCompleted+`, note = '', status = x.status, header = x.header, body = decode(COALESCE(x.body, ''), 'base64'),
			tombstone = x.tombstone, completed = {now}, expires = {now} + x.e
		FROM x WHERE r.scope = x.s AND r.hash = x.h AND r.owner = x.w AND (r.fence = x.f OR x.f = 0) AND r.state + 0 IN (`+string(keyStarted)+`, `+string(keyHeld)+`) RETURNING x.n`,
		asJSON{rows}, after(0), after(0))
	if err != nil {
		return batch, err
	}
	for i, p := range batch {
		if written[i] {
			p.End(struct{}{}, nil)
		} else {
			p.End(struct{}{}, own(idempotency.ErrFenced))
		}
	}
	return nil, nil
}
