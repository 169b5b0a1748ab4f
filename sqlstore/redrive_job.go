package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// A redrive job is claimed as a delivery is: under a lease, with a fence that
// each claim counts up. Its progress is in spec; its state has a column, which
// operators may set meanwhile.

// What statements say of a job's state.
const (
	jobRunning = `state = '` + string(queue.JobRunning) + `'`
	jobOngoing = `state IN ('` + string(queue.JobRunning) + `', '` + string(queue.JobPaused) + `')`
)

// PutJob implements queue.Store.
func (l *DeadLetters) PutJob(ctx context.Context, j queue.Job) error {
	spec, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return l.db.write(ctx, func(t *tx) error {
		if _, err := t.exec(`INSERT INTO forbear_jobs (id, spec, state, application, created) VALUES (?, ?, ?, ?, {t})`, j.ID, string(spec), string(j.State), null(j.Filter.Application), after(0)); err != nil {
			return err
		}
		return t.audit(queue.Entry{Who: j.By, Action: "redrive-start", Target: j.ID, Detail: fmt.Sprintf("%d letters", j.Total)})
	})
}

// jobColumns are what scanJob reads.
const jobColumns = `spec, state, created, fence`

// scanJob reads a job. The columns count, where spec has the same as well.
func scanJob(r *sql.Rows) (j queue.Job, err error) {
	var spec, state string
	var created, fence int64
	if err := r.Scan(&spec, &state, &created, &fence); err != nil {
		return j, err
	}
	err = json.Unmarshal([]byte(spec), &j)
	j.State, j.Created, j.Fence = queue.JobState(state), at(created), fence
	return j, err
}

// Job implements queue.Store.
func (l *DeadLetters) Job(ctx context.Context, id string) (queue.Job, error) {
	list, err := readAll(ctx, l.db, scanJob, `SELECT `+jobColumns+` FROM forbear_jobs WHERE id = ?`, id)
	return first(list, err, fmt.Errorf("redrive %q: %w", id, queue.ErrNotFound))
}

// JobPage implements queue.Store.
func (l *DeadLetters) JobPage(ctx context.Context, application, after string, limit int) ([]queue.Job, error) {
	text, args := `SELECT `+jobColumns+` FROM forbear_jobs WHERE 1 = 1`, []any(nil)
	if application != "" {
		text, args = text+` AND application = ?`, append(args, application)
	}
	if after != "" {
		text, args = text+` AND (created, id) < (SELECT created, id FROM forbear_jobs WHERE id = ?)`, append(args, after)
	}
	return readAll(ctx, l.db, scanJob, text+` ORDER BY created DESC, id DESC LIMIT ?`, append(args, limit)...)
}

// ClaimJob implements queue.Store. The condition stands twice: of two
// processes that find the same job, the second sees the lease of the first when
// it comes to write. A lease that is longer than they are was taken by a clock that was
// ahead.
func (l *DeadLetters) ClaimJob(ctx context.Context, owner string, lease time.Duration) (j queue.Job, ok bool, err error) {
	list, err := do(ctx, l.db, func(t *tx) ([]queue.Job, error) {
		return collect(t, scanJob, `UPDATE forbear_jobs SET owner = ?, lease = {t}, fence = fence + 1 WHERE (lease < {t} OR lease > {t}) AND `+jobRunning+`
			AND id = (SELECT id FROM forbear_jobs WHERE `+jobRunning+` AND (lease < {t} OR lease > {t})
				AND (application IS NULL OR application NOT IN (SELECT application FROM forbear_jobs WHERE application IS NOT NULL AND `+jobRunning+` AND lease BETWEEN {t} AND {t}))
				ORDER BY created LIMIT 1) RETURNING `+jobColumns,
			owner, after(lease), after(0), after(latest), after(0), after(latest), after(0), after(latest))
	})
	if err != nil || len(list) == 0 {
		return j, false, err
	}
	return list[0], true, nil
}

// UpdateJob implements queue.Store.
func (l *DeadLetters) UpdateJob(ctx context.Context, j queue.Job, lease time.Duration) (queue.Job, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return j, err
	}
	return do(ctx, l.db, func(t *tx) (queue.Job, error) {
		var state string
		// What an operator has set since, a pause or a cancellation, stays.
		ok, err := t.row([]any{&state}, `UPDATE forbear_jobs SET spec = ?, lease = {t}, state = CASE WHEN `+jobRunning+` THEN ? ELSE state END WHERE id = ? AND fence = ? RETURNING state`,
			string(spec), after(lease), string(j.State), j.ID, j.Fence)
		if err == nil && !ok {
			err = fmt.Errorf("redrive %q: %w", j.ID, own(queue.ErrFenced))
		}
		now := j
		now.State = queue.JobState(state)
		return now, err
	})
}

// SetJobState implements queue.Store. Without a lease the job may be
// claimed at once when it goes on.
func (l *DeadLetters) SetJobState(ctx context.Context, id string, state queue.JobState, by string) error {
	return l.db.write(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE forbear_jobs SET state = ?, lease = 0 WHERE id = ? AND `+jobOngoing, string(state), id)
		if err == nil && n == 0 {
			err = fmt.Errorf("redrive %q: %w", id, own(queue.ErrState))
		}
		if err != nil {
			return err
		}
		return t.audit(queue.Entry{Who: by, Action: "redrive-" + string(state), Target: id})
	})
}
