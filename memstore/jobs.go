package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// job is a redrive and who holds it.
type job struct {
	deadletter.Job

	lease time.Time
}

// alert is an alert and where it stands.
type alert struct {
	deadletter.Alert

	open bool // still gathering
	due  time.Time
}

func (m *Store) job(id string) *job {
	for _, j := range m.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// PutJob implements [deadletter.Store].
func (m *Store) PutJob(_ context.Context, j deadletter.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.job(j.ID) != nil {
		return fmt.Errorf("redrive %q exists", j.ID)
	}
	j.Created = time.Now()
	m.jobs = append(m.jobs, &job{Job: j})
	m.audit(deadletter.Entry{Who: j.By, Action: "redrive-start", Target: j.ID, Detail: fmt.Sprintf("%d letters", j.Total)})
	return nil
}

// Job implements [deadletter.Store].
func (m *Store) Job(_ context.Context, id string) (deadletter.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.job(id); j != nil {
		return j.Job, nil
	}
	return deadletter.Job{}, fmt.Errorf("redrive %q: %w", id, deadletter.ErrNotFound)
}

// Jobs implements [deadletter.Store].
func (m *Store) Jobs(context.Context) (list []deadletter.Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range slices.Backward(m.jobs) {
		list = append(list, j.Job)
	}
	return list, nil
}

// ClaimJob implements [deadletter.Store].
func (m *Store) ClaimJob(_ context.Context, _ string, lease time.Duration) (deadletter.Job, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, j := range m.jobs {
		if j.State == deadletter.JobRunning && j.lease.Before(now) {
			j.lease = now.Add(lease)
			j.Fence++
			return j.Job, true, nil
		}
	}
	return deadletter.Job{}, false, nil
}

// UpdateJob implements [deadletter.Store].
func (m *Store) UpdateJob(_ context.Context, j deadletter.Job, lease time.Duration) (deadletter.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.job(j.ID)
	if old == nil || old.Fence != j.Fence {
		return j, fmt.Errorf("redrive %q: %w", j.ID, deadletter.ErrFenced)
	}
	if old.State != deadletter.JobRunning {
		j.State = old.State // a pause or a cancellation stays
	}
	old.Job, old.lease = j, time.Now().Add(lease)
	return j, nil
}

// SetJobState implements [deadletter.Store].
func (m *Store) SetJobState(_ context.Context, id string, s deadletter.JobState, by string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.job(id)
	if j == nil || !j.State.Open() {
		return fmt.Errorf("redrive %q: %w", id, deadletter.ErrState)
	}
	j.State, j.lease = s, time.Time{}
	m.audit(deadletter.Entry{Who: by, Action: "redrive-" + string(s), Target: id})
	return nil
}

// Raise implements [deadletter.Store].
func (m *Store) Raise(_ context.Context, a deadletter.Alert) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raise(a)
	return nil
}

// raise joins the open alert of the queue and reason, or opens one: due at once
// when the last one is long ago, otherwise when the gathering ends.
func (m *Store) raise(a deadletter.Alert) {
	now := time.Now()
	due := now
	for _, old := range m.alerts {
		if old.Queue != a.Queue || old.Reason != a.Reason {
			continue
		}
		if old.open {
			old.Count++
			old.Last, old.Letter, old.Detail = now, a.Letter, a.Detail
			return
		}
		if now.Sub(old.Last) < deadletter.CoalesceFor {
			due = now.Add(deadletter.CoalesceFor)
		}
	}
	a.ID, a.Count, a.First, a.Last = int64(len(m.alerts)+1), 1, now, now
	m.alerts = append(m.alerts, &alert{Alert: a, open: true, due: due})
}

// ClaimAlerts implements [deadletter.Store].
func (m *Store) ClaimAlerts(_ context.Context, limit int, lease time.Duration) (list []deadletter.Alert, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, a := range m.alerts {
		if len(list) < limit && !a.Done && !a.due.After(now) {
			a.open, a.due = false, now.Add(lease)
			list = append(list, a.Alert)
		}
	}
	return list, nil
}

// FinishAlert implements [deadletter.Store].
func (m *Store) FinishAlert(_ context.Context, a deadletter.Alert, sent bool, after time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, old := range m.alerts {
		if old.ID == a.ID && !old.open && !old.Done {
			old.Sent, old.Tries, old.Error, old.Done = slices.Clone(a.Sent), a.Tries, a.Error, sent
			old.due = time.Now().Add(after)
		}
	}
	return nil
}

// Alerts implements [deadletter.Store].
func (m *Store) Alerts(_ context.Context, limit int) (list []deadletter.Alert, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range slices.Backward(m.alerts) {
		if len(list) < limit {
			list = append(list, a.Alert)
		}
	}
	return list, nil
}

// Audit implements [deadletter.Store].
func (m *Store) Audit(_ context.Context, e deadletter.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audit(e)
	return nil
}

func (m *Store) audit(e deadletter.Entry) {
	e.At = time.Now()
	m.audits = append(m.audits, e)
}

// Audits implements [deadletter.Store].
func (m *Store) Audits(_ context.Context, limit int) (list []deadletter.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range slices.Backward(m.audits) {
		if len(list) < limit {
			list = append(list, e)
		}
	}
	return list, nil
}
