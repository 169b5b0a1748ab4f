package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// BeginRedrive implements deadletter.Store.
func (s *Store) BeginRedrive(ctx context.Context, id, job, by string, limit int) (deadletter.Letter, error) {
	return do(ctx, s, func(t *tx) (l deadletter.Letter, err error) {
		n, err := t.exec(`UPDATE forbear_letters SET state = 'redriving', outcome = '', job = ?, redriver = ?, redriven = {t}, redrives = redrives + 1
			WHERE id = ? AND state = 'dead' AND redrives < ?`, job, by, after(0), id, limit)
		if err != nil {
			return l, err
		}
		rows, err := t.query(`SELECT `+letterColumns+` FROM forbear_letters WHERE id = ?`, id)
		if err != nil {
			return l, err
		}
		err = each(rows, func(r *sql.Rows) error {
			l, err = s.scanLetter(r)
			return err
		})
		switch {
		case err != nil:
			return l, err
		case n == 0 && l.State == deadletter.Dead:
			return l, fmt.Errorf("dead letter %q was redriven %d times: %w", id, l.Redrives, own(deadletter.ErrRedriveLimit))
		case n == 0:
			return l, t.whyNot(id)
		}
		return l, t.audit(deadletter.Entry{Who: by, Action: "redrive", Target: id, Detail: "job " + job})
	})
}

// EndRedrive implements deadletter.Store.
func (s *Store) EndRedrive(ctx context.Context, id string, o deadletter.Outcome) error {
	return s.write(ctx, func(t *tx) error { return t.endRedrive(id, o) })
}

func (t *tx) endRedrive(id string, o deadletter.Outcome) error {
	state := deadletter.Redriving
	switch o {
	case deadletter.OutcomeDelivered:
		state = deadletter.Resolved
	case deadletter.OutcomeDead:
		state = deadletter.Dead
	}
	_, err := t.exec(`UPDATE forbear_letters SET state = ?, outcome = ? WHERE id = ? AND state = 'redriving'`, string(state), string(o), id)
	return err
}

// Requeue implements webhook.Store.
func (s *Store) Requeue(ctx context.Context, l deadletter.Letter, ordered bool) error {
	m, err := s.encode(webhook.FromLetter(l))
	if err != nil {
		return err
	}
	as := op{alone: true}
	if m.Key != "" {
		as.keys.add(l.Destination, m.Key)
	}
	_, err = doAs(ctx, s, as, func(t *tx) (struct{}, error) { return struct{}{}, t.requeue(&m, l, ordered && m.Key != "") })
	s.notify.wake()
	return err
}

func (t *tx) requeue(m *encoded, l deadletter.Letter, ordered bool) error {
	k, err := t.known(l.EventID, l.Destination, true)
	if errors.Is(err, errUnknown) { // swept, or never accepted
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
	switch {
	case err != nil:
		return err
	case !m.SameContent(&k.Message):
		return own(conflict(l.EventID, l.Destination))
	case k.state == delivered: // by another way, or this letter's redrive is over
		return t.endRedrive(l.ID, deadletter.OutcomeDelivered)
	case k.state != dead:
		_, err := t.exec(`UPDATE forbear_deliveries SET letter = ? WHERE id = ? AND letter IS NULL`, l.ID, k.delivery)
		return err
	}
	state := waiting
	if k.okey != "" { // behind those of its key that are on their way
		busy, err := t.busy(l.Destination, k.okey)
		if err != nil {
			return err
		}
		if busy {
			state = held
		}
	}
	_, err = t.exec(`UPDATE forbear_deliveries SET state = ?, due = {t}, start = {t}, progress = NULL, finished = NULL, letter = ? WHERE id = ?`,
		state, after(0), after(0), l.ID, k.delivery)
	return err
}
