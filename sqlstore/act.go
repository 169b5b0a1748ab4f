package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook/store"
)

// Operators act upon messages in bounded batches, each one transaction with its
// line in the audit trail.

// Cancel implements store.Store.
func (w *Webhooks) Cancel(ctx context.Context, numbers []int64, by string) ([]store.MessageResult, error) {
	results, err := do(ctx, w.db, func(t *tx) ([]store.MessageResult, error) {
		list, err := t.targets(numbers)
		if err != nil {
			return nil, err
		}
		if err := t.cancel(unsent(list)); err != nil {
			return nil, err
		}
		if _, err := t.exec(`UPDATE forbear_deliveries SET cancel = {t} WHERE id IN ({ids}) AND `+stateLeased, after(0), asJSON{numbers}); err != nil {
			return nil, err
		}
		results := make([]store.MessageResult, len(list))
		for i, g := range list {
			r := store.MessageResult{ID: g.message, Endpoint: g.Endpoint, State: stateNames[g.state], Done: true}
			switch g.state {
			case waiting, held:
				r.State = store.StateCanceled
			case leased:
				r.State = store.StateCanceling
			default:
				r.Done, r.Why = false, store.WhyEnded
			}
			results[i] = r
		}
		return results, t.auditResults(by, "message-cancel", results)
	})
	w.db.notify.wake() // others of their keys may go
	return results, err
}

// cancel ends deliveries that are not under way. A letter that was being redriven
// is discarded: a person has given it up.
func (t *tx) cancel(list []target) error {
	if err := t.endUnsent(list, canceled); err != nil {
		return err
	}
	for _, g := range list {
		if g.letter == "" {
			continue
		}
		if _, err := t.exec(`UPDATE forbear_letters SET `+letterDiscarded+`, discard = 'canceled' WHERE id = ? AND `+letterRedriving, g.letter); err != nil {
			return err
		}
	}
	return nil
}

// cancelMarked cancels what was to be canceled when it was under way, and waits
// again by now.
func (w *Webhooks) cancelMarked(ctx context.Context, limit int) (int, error) {
	ids, err := readAll(ctx, w.db, one[int64], `SELECT id FROM forbear_deliveries WHERE cancel IS NOT NULL AND `+stateWaiting+` ORDER BY id LIMIT ?`, limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return do(ctx, w.db, func(t *tx) (int, error) {
		list, err := t.targets(ids)
		if err != nil {
			return 0, err
		}
		list = unsent(list)
		return len(list), t.cancel(list)
	})
}

// auditResults adds a line for what was done: it names the message, or says how
// many there were.
func (t *tx) auditResults(by, action string, results []store.MessageResult) error {
	entry, n := queue.Entry{Who: by, Action: action}, 0
	for _, r := range results {
		if !r.Done {
			continue
		}
		if n++; n == 1 {
			entry.Target, entry.Detail = r.ID, "endpoint "+r.Endpoint
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
	default:
		entry.Detail += fmt.Sprintf(", and %d more", n-1)
	}
	return t.audit(entry)
}

// SendAgain implements store.Store.
func (w *Webhooks) SendAgain(ctx context.Context, numbers []int64, redrives int, by string) ([]store.MessageResult, error) {
	results, err := do(ctx, w.db, func(t *tx) ([]store.MessageResult, error) {
		// Bodies are not dropped, and nothing is swept, while it is looked at.
		if err := t.db.d.lock(t, sweepLock); err != nil {
			return nil, err
		}
		list, err := t.targets(numbers)
		if err != nil {
			return nil, err
		}
		facts, err := t.facts(numbers)
		if err != nil {
			return nil, err
		}
		results := make([]store.MessageResult, len(list))
		for i, g := range list {
			r := store.MessageResult{ID: g.message, Endpoint: g.Endpoint, State: stateNames[g.state]}
			if r.Why, err = t.sendAgain(g, facts[g.id], redrives, by); err != nil {
				return nil, err
			}
			if r.Done = r.Why == ""; r.Done {
				r.State = store.StateWaiting
			}
			results[i] = r
		}
		return results, t.auditResults(by, "message-send-again", results)
	})
	w.db.notify.wake()
	return results, err
}

// messageFacts is what stands against sending a message again.
type messageFacts struct{ dropped, orphan bool }

// facts reads them, by the delivery's id.
func (t *tx) facts(ids []int64) (map[int64]messageFacts, error) {
	facts := make(map[int64]messageFacts, len(ids))
	err := t.each(func(r *sql.Rows) error {
		var id int64
		var f messageFacts
		err := r.Scan(&id, &f.dropped, &f.orphan)
		facts[id] = f
		return err
	}, `SELECT d.id, m.dropped IS NOT NULL, NOT EXISTS (SELECT 1 FROM forbear_endpoints e WHERE e.id = d.endpoint AND e.deleted IS NULL)
		FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.id IN ({ids})`, asJSON{ids})
	return facts, err
}

// sendAgain makes one delivery due again, or says what stands against it. Its
// history goes on: claims are counted on, and attempts from 1.
func (t *tx) sendAgain(g target, f messageFacts, redrives int, by string) (why string, err error) {
	switch {
	case g.state == waiting || g.state == leased || g.state == held:
		return store.WhyUnderWay, nil
	case f.dropped:
		return store.WhyBodyDropped, nil
	case f.orphan:
		return store.WhyNoEndpoint, nil
	}
	letter := any(nil)
	if g.state == dead {
		id, why, err := t.redriveLetter(g, redrives, by)
		if err != nil || why != "" {
			return why, err
		}
		letter = id
	}
	state := waiting
	if g.Key != "" { // behind those of its key that are on their way
		if state, err = t.place(g.Endpoint, g.Key); err != nil {
			return "", err
		}
	}
	return "", t.restart(g.id, state, letter)
}

// restart makes a delivery that had ended due, with a fresh count of attempts.
func (t *tx) restart(id int64, state rowState, letter any) error {
	_, err := t.exec(`UPDATE forbear_deliveries SET state = ?, due = {t}, start = {t}, written = {t}, progress = NULL, finished = NULL, cancel = NULL, letter = ? WHERE id = ?`,
		state, after(0), after(0), after(0), letter, id)
	return err
}

// redriveLetter marks the letter of a dead delivery as being redriven.
func (t *tx) redriveLetter(g target, redrives int, by string) (id, why string, err error) {
	var count int
	found, err := t.row([]any{&id, &count}, `SELECT id, redrives FROM forbear_letters WHERE event_id = ? AND dest = ? AND `+letterDead+` AND reason NOT IN (?, ?) ORDER BY seq DESC LIMIT 1`,
		g.message, g.Endpoint, deadletter.ReasonInvalid, deadletter.ReasonConflict)
	switch {
	case err != nil:
		return "", "", err
	case !found:
		return "", store.WhyLetter, nil
	case count >= redrives:
		return "", store.WhyLimit, nil
	}
	_, err = t.exec(`UPDATE forbear_letters SET `+letterRedriving+`, outcome = ?, job = NULL, redriver = ?, redriven = {t}, redrives = redrives + 1 WHERE id = ?`,
		string(deadletter.RedriveNone), by, after(0), id)
	return id, "", err
}
