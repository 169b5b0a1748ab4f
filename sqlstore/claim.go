package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A claim takes deliveries that are due under a lease: the row's owner, the end
// of the lease, and a fence that each claim counts up. A write-back carries the
// fence, so that a process whose lease has passed to another writes nothing.
// Claims are counted apart from attempts: a crash loop burns no retries.

// waitingEndpoints makes the table e of the endpoints with waiting deliveries, and NULL. It
// hops from endpoint to endpoint on the index of waiting deliveries: its cost is that of the
// endpoints, not of the deliveries.
const waitingEndpoints = `WITH RECURSIVE e (endpoint) AS (
		SELECT min(endpoint) FROM forbear_deliveries WHERE ` + stateWaiting + `
		UNION ALL
		SELECT (SELECT min(d.endpoint) FROM forbear_deliveries d WHERE d.` + stateWaiting + ` AND d.endpoint > e.endpoint) FROM e WHERE e.endpoint IS NOT NULL)`

// NextDues implements store.Store.
func (w *Webhooks) NextDues(ctx context.Context) (heads []store.NextDue, err error) {
	err = w.db.each(ctx, intoHeads(&heads), waitingEndpoints+`
		SELECT endpoint, (SELECT min(due) FROM forbear_deliveries d WHERE d.`+stateWaiting+` AND d.endpoint = e.endpoint) - {t} FROM e WHERE endpoint IS NOT NULL`, after(0))
	return heads, err
}

// heads finds when the first waiting delivery of each endpoint is due.
func (t *tx) heads(endpoints []string) (heads []store.NextDue, err error) {
	if len(endpoints) == 0 {
		return nil, nil
	}
	err = t.each(intoHeads(&heads), `SELECT e.value, (SELECT min(due) FROM forbear_deliveries d WHERE d.`+stateWaiting+` AND d.endpoint = e.value) - {t} FROM {texts} e`, after(0), asJSON{endpoints})
	return heads, err
}

// intoHeads adds heads to a list; an endpoint with nothing waiting has none.
func intoHeads(list *[]store.NextDue) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var h store.NextDue
		var in sql.NullInt64
		err := r.Scan(&h.Endpoint, &in)
		if h.In = time.Duration(in.Int64) * time.Microsecond; in.Valid {
			*list = append(*list, h)
		}
		return err
	}
}

// claimed are the columns that scanClaim reads of a delivery d and its message.
const claimed = `d.id, d.fence, d.claims, d.endpoint, COALESCE(d.okey, ''), d.due, d.start, COALESCE(d.progress, ''), COALESCE(d.letter, ''), d.cancel IS NOT NULL, d.message_id, m.created, m.meta, m.body`

// scanClaim reads a claimed delivery whole, so that it can be sent without
// another question, and what a statement selects beside it. It unseals the message.
// One that cannot be read is no error, which would fail the claim of all others.
func (db *DB) scanClaim(r *sql.Rows, more ...any) (d store.Delivery, err error) {
	var due, start, made int64
	var progress, id, meta string
	var body []byte
	dest := append([]any{&d.ID, &d.Fence, &d.Claims, &d.Endpoint, &d.OrderKey, &due, &start, &progress, &d.Letter, &d.Canceled, &id, &made, &meta, &body}, more...)
	if err := r.Scan(dest...); err != nil {
		return d, err
	}
	d.Due, d.Start = at(due), at(start)
	if progress != "" {
		d.Unreadable = json.Unmarshal([]byte(progress), &d.Progress)
	}
	if d.Unreadable == nil {
		d.Message, d.Unreadable = db.decode(id, meta, made, body)
	}
	if d.Unreadable != nil {
		d.Message = webhook.Message{ID: id}
	}
	return d, nil
}

// claim says what to take.
type claim struct {
	owner string
	lease time.Duration
	lanes []store.Lane
	which string // the condition and the order, with one bound
	bound after
}

// claimDue is a claim's which for the deliveries that are due, and claimOld for
// those that began before its bound, due or not. Those that cannot be read are put off,
// and so come behind the others.
const (
	claimDue = `due <= {now} ORDER BY due`
	claimOld = `start < {now} ORDER BY due`
)

// until notes when the leases end. They are counted from before the question,
// on the monotonic clock: they end here no later than in the database.
func until(list []store.Delivery, end time.Time) []store.Delivery {
	for i := range list {
		list[i].LeaseEnd = end
	}
	return list
}

// Overdue implements store.Store. It looks outside of the writers, since the
// look may have to pass a million that are scheduled, and mostly finds nothing.
func (w *Webhooks) Overdue(ctx context.Context, owner string, lease, age time.Duration, lane store.Lane) ([]store.Delivery, error) {
	found := false
	err := w.db.each(ctx, func(*sql.Rows) error { found = true; return nil },
		`SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND `+stateWaiting+` AND start < {now} LIMIT 1`, lane.Endpoint, after(-age))
	// Nothing overdue: no writer is bothered.
	if err != nil || !found {
		return nil, err
	}
	c := claim{owner: owner, lease: lease, lanes: []store.Lane{lane}, which: claimOld, bound: after(-age)}
	// Before the claim: what passes until it is written shortens the lease here.
	end := time.Now().Add(lease)
	done, err := doAs(ctx, w.db, op{apart: true}, func(t *tx) (store.StepResult, error) { return t.db.d.claim(t, c) })
	return until(done.Claimed, end), err
}

// lost is a delivery whose lease ran out.
type lost struct {
	id, due, lease, claims int64
	owner, progress        string
}

// scanLost reads what Reclaim needs of a delivery.
func scanLost(r *sql.Rows) (l lost, err error) {
	err = r.Scan(&l.id, &l.due, &l.lease, &l.claims, &l.owner, &l.progress)
	return l, err
}

// Reclaim implements store.Store. What was to be canceled while it was under way
// is canceled here, once it waits again.
func (w *Webhooks) Reclaim(ctx context.Context, limit int) (int, error) {
	n, canceling := w.cancelMarked(ctx, limit) // that it fails keeps no lost lease from being taken back
	expired, err := do(ctx, w.db, func(t *tx) (int, error) {
		n, err := t.takeBack(`lease < {now}`, after(0), limit)
		if err == nil && n == 0 {
			n, err = t.setRight(limit)
		}
		return n, err
	})
	return n + expired, errors.Join(canceling, err)
}

// takeBack takes deliveries back whose leases are such. It returns their number.
func (t *tx) takeBack(such string, args ...any) (int, error) {
	list, err := collect(t, scanLost, `SELECT id, due, lease, claims, owner, COALESCE(progress, '') FROM forbear_deliveries WHERE `+stateLeased+` AND `+such+` ORDER BY lease LIMIT ? {skip locked}`, args...)
	for _, l := range list {
		if err == nil {
			err = t.reclaim(l)
		}
	}
	return len(list), err
}

// interrupted is the error type of an attempt that no one saw the end of.
const interrupted = "interrupted"

// reclaim lets a lost delivery be claimed again. The attempt that may have been
// made is recorded as interrupted: a possible duplicate, in plain sight.
func (t *tx) reclaim(l lost) error {
	var p edge.Progress
	if l.progress != "" {
		if err := json.Unmarshal([]byte(l.progress), &p); err != nil {
			return err
		}
	}
	if _, err := t.exec(`INSERT INTO forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker) VALUES (?, ?, ?, ?, ?, 0, 0, ?, 0, ?) ON CONFLICT DO NOTHING`,
		l.id, l.claims, p.Attempts+1, l.due, l.lease, interrupted, l.owner); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE forbear_deliveries SET `+stateWaiting+` WHERE id = ?`, l.id)
	return err
}
