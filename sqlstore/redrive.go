package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook/store"
)

// A redrive goes through two views. The letter is marked first, then its
// message is requeued, and what becomes of the delivery is written back to the
// letter in the transaction of that write-back. Between the two the process may
// die: then the job that redrives does both again, which is harmless.

// BeginRedrive implements queue.Store.
func (l *DeadLetters) BeginRedrive(ctx context.Context, id, job, by string, limit int) (deadletter.Letter, error) {
	return do(ctx, l.db, func(t *tx) (deadletter.Letter, error) {
		var list []deadletter.Letter
		// The condition is in the write: of two operators one begins.
		n, err := t.exec(`UPDATE forbear_letters SET `+letterRedriving+`, outcome = ?, job = ?, redriver = ?, redriven = {t}, redrives = redrives + 1
			WHERE id = ? AND `+letterDead+` AND redrives < ?`, string(deadletter.RedriveNone), job, by, after(0), id, limit)
		if err == nil {
			list, err = collect(t, t.db.scanLetter, `SELECT `+letterColumns+` FROM forbear_letters WHERE id = ?`, id)
		}
		switch {
		case err != nil:
			return deadletter.Letter{}, err
		case n > 0:
			return list[0], t.audit(queue.Entry{Who: by, Action: "redrive", Target: id, Detail: "job " + job})
		case len(list) > 0 && list[0].State == deadletter.Dead:
			return deadletter.Letter{}, fmt.Errorf("dead letter %q was redriven %d times: %w", id, list[0].Redrives, own(queue.ErrRedriveLimit))
		}
		return deadletter.Letter{}, t.whyNot(id)
	})
}

// RecordRedrive implements queue.Store.
func (l *DeadLetters) RecordRedrive(ctx context.Context, id string, o deadletter.RedriveResult) error {
	return l.db.write(ctx, func(t *tx) error { return t.endRedrive(id, o) })
}

// endRedrive notes the outcome of a redrive; one that only failed for now goes
// on.
func (t *tx) endRedrive(id string, o deadletter.RedriveResult) error {
	state := deadletter.Redriving
	switch o {
	case deadletter.RedriveDelivered:
		state = deadletter.Resolved
	case deadletter.RedriveDead:
		state = deadletter.Dead
	}
	_, err := t.exec(`UPDATE forbear_letters SET state = ?, outcome = ? WHERE id = ? AND `+letterRedriving, string(state), string(o), id)
	return err
}

// Requeue implements store.Store.
func (w *Webhooks) Requeue(ctx context.Context, l deadletter.Letter, ordered bool) error {
	m, err := w.db.encode(store.FromLetter(l))
	if err != nil {
		return err
	}
	o := &op{run: func(t *tx) error { return t.requeue(&m, l, ordered && m.Key != "") }}
	if m.Key != "" {
		o.keys.add(l.Destination, m.Key)
	}
	err = w.db.submit(ctx, o)
	// Even after an error: a caller that left does not know whether it is there.
	w.db.notify.wake()
	return err
}

// requeue puts a letter's message on its way. The transaction holds the lock of
// its key.
func (t *tx) requeue(m *encoded, l deadletter.Letter, ordered bool) error {
	// No other transaction changes it before this one ends.
	k, err := t.known(knownQuery+` {lock delivery}`, l.EventID, l.Destination)
	switch {
	case errors.Is(err, errUnknown): // swept, or never accepted
		return t.requeueUnknown(m, l, ordered)
	case err != nil:
		return err
	case k.erased || !k.same(&m.Message):
		return own(conflict(l.EventID, l.Destination))
	case k.state == delivered: // by another way, or this letter's redrive is over
		return t.endRedrive(l.ID, deadletter.RedriveDelivered)
	case k.state != dead && k.state != canceled: // on its way
		_, err := t.exec(`UPDATE forbear_deliveries SET letter = ? WHERE id = ? AND letter IS NULL`, l.ID, k.delivery)
		return err
	}
	// It had ended: it begins anew, with a fresh count of attempts.
	state := waiting
	if k.okey != "" { // behind those of its key that are on their way
		if state, err = t.place(l.Destination, k.okey); err != nil {
			return err
		}
	}
	return t.restart(k.delivery, state, l.ID)
}

// requeueUnknown adds the message of a letter anew.
func (t *tx) requeueUnknown(m *encoded, l deadletter.Letter, ordered bool) error {
	seq, err := t.addMessage(m)
	if err != nil {
		return err
	}
	if _, err := t.addDelivery(seq, l.Destination, m, ordered); err != nil {
		return err
	}
	_, err = t.exec(`UPDATE forbear_deliveries SET letter = ? WHERE message_id = ? AND endpoint = ?`, l.ID, l.EventID, l.Destination)
	return err
}
