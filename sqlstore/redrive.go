package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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

// PutJob implements deadletter.Store.
func (s *Store) PutJob(ctx context.Context, j deadletter.Job) error {
	spec, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		if _, err := t.exec(`INSERT INTO forbear_jobs (id, spec, state, created) VALUES (?, ?, ?, {t})`, j.ID, string(spec), string(j.State), after(0)); err != nil {
			return err
		}
		return t.audit(deadletter.Entry{Who: j.By, Action: "redrive-start", Target: j.ID, Detail: fmt.Sprintf("%d letters", j.Total)})
	})
}

const jobColumns = `spec, state, created, fence`

func scanJob(r *sql.Rows) (j deadletter.Job, err error) {
	var spec, state string
	var created, fence int64
	if err := r.Scan(&spec, &state, &created, &fence); err != nil {
		return j, err
	}
	err = json.Unmarshal([]byte(spec), &j)
	j.State, j.Created, j.Fence = deadletter.JobState(state), at(created), fence
	return j, err
}

// Job implements deadletter.Store.
func (s *Store) Job(ctx context.Context, id string) (j deadletter.Job, err error) {
	found := false
	err = s.query(ctx, func(r *sql.Rows) error {
		found = true
		j, err = scanJob(r)
		return err
	}, `SELECT `+jobColumns+` FROM forbear_jobs WHERE id = ?`, id)
	if err == nil && !found {
		err = fmt.Errorf("redrive %q: %w", id, deadletter.ErrNotFound)
	}
	return j, err
}

// Jobs implements deadletter.Store.
func (s *Store) Jobs(ctx context.Context) (list []deadletter.Job, err error) {
	err = s.query(ctx, func(r *sql.Rows) error {
		j, err := scanJob(r)
		list = append(list, j)
		return err
	}, `SELECT `+jobColumns+` FROM forbear_jobs ORDER BY created DESC LIMIT 100`)
	return list, err
}

// ClaimJob implements deadletter.Store.
func (s *Store) ClaimJob(ctx context.Context, owner string, lease time.Duration) (deadletter.Job, bool, error) {
	j, err := do(ctx, s, func(t *tx) (j deadletter.Job, err error) {
		rows, err := t.query(`UPDATE forbear_jobs SET owner = ?, lease = {t}, fence = fence + 1 WHERE lease < {t} AND state = 'running'
			AND id = (SELECT id FROM forbear_jobs WHERE state = 'running' AND lease < {t} ORDER BY created LIMIT 1) RETURNING `+jobColumns, owner, after(lease), after(0), after(0))
		if err != nil {
			return j, err
		}
		return j, each(rows, func(r *sql.Rows) error {
			j, err = scanJob(r)
			return err
		})
	})
	return j, j.ID != "", err
}

// UpdateJob implements deadletter.Store.
func (s *Store) UpdateJob(ctx context.Context, j deadletter.Job, lease time.Duration) (deadletter.Job, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return j, err
	}
	return do(ctx, s, func(t *tx) (deadletter.Job, error) {
		var state string
		// What somebody else has set since, a pause or a cancellation, stays.
		ok, err := t.row([]any{&state}, `UPDATE forbear_jobs SET spec = ?, lease = {t}, state = CASE WHEN state = 'running' THEN ? ELSE state END WHERE id = ? AND fence = ? RETURNING state`,
			string(spec), after(lease), string(j.State), j.ID, j.Fence)
		if err == nil && !ok {
			err = fmt.Errorf("redrive %q: %w", j.ID, own(deadletter.ErrFenced))
		}
		now := j
		now.State = deadletter.JobState(state)
		return now, err
	})
}

// SetJobState implements deadletter.Store.
func (s *Store) SetJobState(ctx context.Context, id string, state deadletter.JobState, by string) error {
	return s.write(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE forbear_jobs SET state = ?, lease = 0 WHERE id = ? AND state IN ('running', 'paused')`, string(state), id)
		if err == nil && n == 0 {
			err = fmt.Errorf("redrive %q: %w", id, own(deadletter.ErrState))
		}
		if err != nil {
			return err
		}
		return t.audit(deadletter.Entry{Who: by, Action: "redrive-" + string(state), Target: id})
	})
}
