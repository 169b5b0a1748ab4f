package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// job is a redrive with the end of its holder's lease. The holder's name is
// not kept: the fence alone decides whose progress counts.
type job struct {
	queue.Job

	lease time.Time
}

// job returns the redrive with that id, or nil; m.mu is held.
func (m *Store) job(id string) *job {
	return find(m.jobs, func(j *job) bool { return j.ID == id })
}

// Ids are unique: an operator who repeats a command gets an error and not a
// second redrive of the same letters.
// PutJob implements queue.Store.
func (m *Store) PutJob(_ context.Context, j queue.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.job(j.ID) != nil {
		return fmt.Errorf("redrive %q exists", j.ID)
	}
	j.Created = time.Now()
	m.jobs = append(m.jobs, &job{Job: j})
	m.audit(queue.Entry{Who: j.By, Action: "redrive-start", Target: j.ID, Detail: fmt.Sprintf("%d letters", j.Total)})
	return nil
}

// Job implements queue.Store.
func (m *Store) Job(_ context.Context, id string) (queue.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.job(id); j != nil {
		return j.Job, nil
	}
	return queue.Job{}, fmt.Errorf("redrive %q: %w", id, queue.ErrNotFound)
}

// The newest come first.
// JobPage implements queue.Store.
func (m *Store) JobPage(_ context.Context, application, after string, limit int) (list []queue.Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	behind := after == ""
	for _, j := range slices.Backward(m.jobs) {
		if behind && len(list) < limit && (application == "" || j.Filter.Application == application) {
			list = append(list, j.Job)
		}
		behind = behind || j.ID == after
	}
	return list, nil
}

// The first running job without a live lease goes to the caller. The fence
// counts each claim, so that a holder that lost its lease cannot write
// progress.
// ClaimJob implements queue.Store.
func (m *Store) ClaimJob(_ context.Context, _ string, lease time.Duration) (queue.Job, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	held := map[string]bool{} // applications
	for _, j := range m.jobs {
		if j.Filter.Application != "" && j.State == queue.JobRunning && !j.lease.Before(now) {
			held[j.Filter.Application] = true
		}
	}
	for _, j := range m.jobs {
		if j.State == queue.JobRunning && j.lease.Before(now) && !held[j.Filter.Application] {
			j.lease = now.Add(lease)
			j.Fence++
			return j.Job, true, nil
		}
	}
	return queue.Job{}, false, nil
}

// UpdateJob implements queue.Store.
func (m *Store) UpdateJob(_ context.Context, j queue.Job, lease time.Duration) (queue.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.job(j.ID)
	// Another process has claimed it since.
	if old == nil || old.Fence != j.Fence {
		return j, fmt.Errorf("redrive %q: %w", j.ID, queue.ErrFenced)
	}
	if old.State != queue.JobRunning {
		j.State = old.State // a pause or a cancellation stays
	}
	old.Job, old.lease = j, time.Now().Add(lease)
	return j, nil
}

// A job that is paused or canceled loses its lease at once: when it is
// resumed, any process may claim it without waiting.
// SetJobState implements queue.Store.
func (m *Store) SetJobState(_ context.Context, id string, s queue.JobState, by string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.job(id)
	if j == nil || !j.State.Open() {
		return fmt.Errorf("redrive %q: %w", id, queue.ErrState)
	}
	j.State, j.lease = s, time.Time{}
	m.audit(queue.Entry{Who: by, Action: "redrive-" + string(s), Target: id})
	return nil
}
