package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

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
