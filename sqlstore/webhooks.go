package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook/store"
)

// The methods of this view stand by what they do: accepting in accept.go, claiming
// in claim.go, writing back in writeback.go, the outbox in outbox.go, endpoints in
// endpoints.go, and the return of dead letters in redrive.go. Here is what reads
// and deletes finished work.

// Webhooks is the view of a database that keeps endpoints, messages, deliveries
// and attempts, and that empties the outbox. It implements store.Store and
// store.Waker. Make it with [DB.Webhooks]. It is safe for concurrent use.
type Webhooks struct{ db *DB }

// Webhooks returns the endpoints and deliveries of the database.
func (db *DB) Webhooks() *Webhooks { return &Webhooks{db} }

// stateNames are the states of a delivery as people see them.
var stateNames = map[rowState]string{
	waiting: store.StateWaiting, leased: store.StateSending, delivered: store.StateDelivered, dead: store.StateDead,
	held: store.StateHeld, canceled: store.StateCanceled,
}

// Deliveries implements store.Store.
func (w *Webhooks) Deliveries(ctx context.Context, message string) (list []store.DeliveryInfo, err error) {
	var ids []int64
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var id, due int64
		var state rowState
		var progress string
		var ended, cancel bool
		i := store.DeliveryInfo{Message: message}
		if err := r.Scan(&id, &i.Endpoint, &state, &due, &i.Claims, &progress, &ended, &cancel); err != nil {
			return err
		}
		var p edge.Progress
		if progress != "" {
			if err := json.Unmarshal([]byte(progress), &p); err != nil {
				return err
			}
		}
		i.State, i.Postponed = stateNames[state], p.Postponed
		if !ended {
			if i.Due = at(due); cancel {
				i.State = store.StateCanceling
			}
		}
		ids, list = append(ids, id), append(list, i)
		return nil
	}, `SELECT id, endpoint, state, due, claims, COALESCE(progress, ''), finished IS NOT NULL, cancel IS NOT NULL FROM forbear_deliveries WHERE message_id = ? ORDER BY id`, message)
	if err != nil {
		return nil, err
	}
	// One query a delivery: a message has few, and their rows are closed by now.
	for i, id := range ids {
		list[i].History = []deadletter.Attempt{}
		if err := w.db.each(ctx, into(&list[i].History, w.db.scanAttempts(id)), historyQuery, id); err != nil {
			return nil, err
		}
		for _, a := range list[i].History {
			list[i].Attempts = max(list[i].Attempts, a.Number)
		}
	}
	return list, nil
}

// Sweep implements store.Store. One process does it at a time.
func (w *Webhooks) Sweep(ctx context.Context, age time.Duration, limit int) (int, error) {
	return do(ctx, w.db, func(t *tx) (int, error) {
		// Two at once would wait for each other's rows, for nothing.
		if mine, err := t.db.d.tryLock(t, sweepLock); err != nil || !mine {
			return 0, err
		}
		// Locked, or one that is redriven in between would be deleted with its message.
		list, err := collect(t, scanEnded, `SELECT `+endedColumns+` FROM forbear_deliveries WHERE finished < {now} ORDER BY finished LIMIT ? {skip locked}`, after(-age), limit)
		if err != nil {
			return 0, err
		}
		if err := t.deleteDeliveries(list); err != nil {
			return 0, err
		}
		return len(list), t.sweepTallies()
	})
}

// Shrink implements store.Shrinker.
func (w *Webhooks) Shrink(ctx context.Context) (more bool, err error) {
	return do(ctx, w.db, func(t *tx) (bool, error) { return t.db.d.shrink(t) })
}

// deleteDeliveries deletes deliveries with their history, and each message with the
// last of its deliveries, in three statements for any number of them.
func (t *tx) deleteDeliveries(list []ended) error {
	ids, messages := make([]int64, len(list)), make([]ordering, len(list))
	for i, f := range list {
		ids[i], messages[i] = f.id, ordering{f.messageID, strconv.FormatInt(f.message, 10)}
	}
	for _, text := range []string{`DELETE FROM forbear_attempts WHERE delivery {in ids}`, `DELETE FROM forbear_deliveries WHERE id {in ids}`} {
		if _, err := t.exec(text, asJSON{ids}); err != nil {
			return err
		}
	}
	// Deliveries of one message have its id: their index is by that.
	left, err := collect(t, one[int64], `SELECT DISTINCT CAST(x.k AS BIGINT) FROM {keys} WHERE NOT EXISTS (
		SELECT 1 FROM forbear_deliveries d WHERE d.message_id = x.e AND d.message = CAST(x.k AS BIGINT))`, asJSON{messages})
	if err == nil && len(left) > 0 {
		_, err = t.exec(`DELETE FROM forbear_messages WHERE seq {in ids}`, asJSON{left})
	}
	return err
}
