package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// An alert gathers what is raised for one queue and reason while it is open. A
// claim closes it, so that what is raised while it is being sent opens another.

// alertUndone is the condition of the index of alerts that are due: open or
// claimed.
const alertUndone = `state < ` + string(alertSent)

// Raise implements queue.Store.
func (l *DeadLetters) Raise(ctx context.Context, a queue.Alert) error {
	return l.db.write(ctx, func(t *tx) error { t.raise(a); return nil })
}

// raise raises an alert with the transaction, at its end.
func (t *tx) raise(a queue.Alert) { t.alerts = append(t.alerts, a) }

// raiseAll raises the alerts of the transaction, in one order: the open alert
// of a queue and reason is a row that all writers want. They are its last
// locks, and held for the time of a commit.
func (t *tx) raiseAll() error {
	// A group may raise hundreds of one kind, in any order.
	slices.SortStableFunc(t.alerts, func(a, b queue.Alert) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason))
	})
	for _, a := range t.alerts {
		if err := t.joinAlert(a); err != nil {
			return err
		}
	}
	t.alerts = nil
	return nil
}

// joinAlert joins the open alert of the queue and reason, or opens one: due at
// once when the last one is long ago, otherwise when the gathering ends.
func (t *tx) joinAlert(a queue.Alert) error {
	// The condition of ON CONFLICT must be the unique index's own.
	const isOpen, isClosed = `state = ` + string(alertOpen), `state > ` + string(alertOpen)
	_, err := t.exec(`INSERT INTO forbear_alerts (queue, reason, state, count, first_at, last_at, due, letter, detail)
		VALUES (?, ?, `+string(alertOpen)+`, 1, {t}, {t}, CASE WHEN {t} - COALESCE((SELECT max(last_at) FROM forbear_alerts WHERE queue = ? AND reason = ? AND `+isClosed+`), 0) < ? THEN {t} ELSE {t} END, ?, ?)
		ON CONFLICT (queue, reason) WHERE `+isOpen+` DO UPDATE SET count = forbear_alerts.count + 1, last_at = EXCLUDED.last_at, letter = EXCLUDED.letter, detail = EXCLUDED.detail`,
		a.Queue, a.Reason, after(0), after(0), after(0), a.Queue, a.Reason, queue.CoalesceFor.Microseconds(), after(queue.CoalesceFor), after(0), a.Letter, a.Detail)
	return err
}

// alertColumns are what scanAlert reads: what changes while an alert gathers, and
// its specification, which is the rest.
const alertColumns = `id, queue, reason, state, count, first_at, last_at, letter, detail, spec`

func scanAlert(r *sql.Rows) (a queue.Alert, err error) {
	var state rowState
	var first, last int64
	var id int64
	var queue, reason, letter, detail, spec string
	var count int
	if err := r.Scan(&id, &queue, &reason, &state, &count, &first, &last, &letter, &detail, &spec); err != nil {
		return a, err
	}
	err = json.Unmarshal([]byte(spec), &a)
	a.ID, a.Queue, a.Reason, a.Count, a.Letter, a.Detail = id, queue, reason, count, letter, detail
	a.First, a.Last, a.Done = at(first), at(last), state == alertSent
	return a, err
}

// ClaimAlerts implements queue.Store. A claimed alert is due again when
// its lease ends: a process that dies while sending loses nothing.
func (l *DeadLetters) ClaimAlerts(ctx context.Context, limit int, lease time.Duration) ([]queue.Alert, error) {
	return do(ctx, l.db, func(t *tx) ([]queue.Alert, error) {
		return collect(t, scanAlert, `UPDATE forbear_alerts SET state = `+string(alertClaimed)+`, due = {t} WHERE id IN (SELECT id FROM forbear_alerts WHERE `+alertUndone+` AND (due <= {now} OR due > {now}) ORDER BY due LIMIT ? {skip locked}) RETURNING `+alertColumns,
			after(lease), after(0), after(latest), limit)
	})
}

// WriteBackAlert implements queue.Store.
func (l *DeadLetters) WriteBackAlert(ctx context.Context, a queue.Alert, sent bool, wait time.Duration) error {
	spec, err := json.Marshal(a)
	if err != nil {
		return err
	}
	// One that was not sent stays claimed, and due again.
	state := alertClaimed
	if sent {
		state = alertSent
	}
	return l.db.write(ctx, func(t *tx) error {
		_, err := t.exec(`UPDATE forbear_alerts SET state = ?, spec = ?, due = {t} WHERE id = ? AND state = `+string(alertClaimed), state, string(spec), after(wait), a.ID)
		return err
	})
}

// AlertPage implements queue.Store.
func (l *DeadLetters) AlertPage(ctx context.Context, after int64, limit int) ([]queue.Alert, error) {
	return readAll(ctx, l.db, scanAlert, `SELECT `+alertColumns+` FROM forbear_alerts WHERE id < ? ORDER BY id DESC LIMIT ?`, cmp.Or(after, math.MaxInt64), limit)
}
