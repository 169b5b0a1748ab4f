package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// alert is an alert with what decides when it is sent: it gathers while
// open, and is due at its time. A lease moves the due time on, as
// WriteBackAlert does after a failure, so that an alert whose sender died comes
// back by itself.
type alert struct {
	queue.Alert

	open bool // still gathering
	due  time.Time
}

// Raise implements queue.Store.
func (m *Store) Raise(_ context.Context, a queue.Alert) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raise(a)
	return nil
}

// raise joins the open alert of the queue and reason, or opens one: due at
// once when the last one is long ago, otherwise when the gathering ends. The
// first failure thus pages immediately, and an outage of a thousand letters
// pages once per gathering and not a thousand times. m.mu is held.
func (m *Store) raise(a queue.Alert) {
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
		if now.Sub(old.Last) < queue.CoalesceFor {
			due = now.Add(queue.CoalesceFor)
		}
	}
	a.ID, a.Count, a.First, a.Last = int64(len(m.alerts)+1), 1, now, now
	m.alerts = append(m.alerts, &alert{Alert: a, open: true, due: due})
}

// Claiming closes an alert: later letters open the next one, so that the
// count that was sent never changes afterwards.
// ClaimAlerts implements queue.Store.
func (m *Store) ClaimAlerts(_ context.Context, limit int, lease time.Duration) (list []queue.Alert, err error) {
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

// An alert that is still open, or done, was claimed by no one, and the call
// changes nothing.
// WriteBackAlert implements queue.Store.
func (m *Store) WriteBackAlert(_ context.Context, a queue.Alert, sent bool, after time.Duration) error {
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

// The newest come first, which is what an operator looks for.
// AlertPage implements queue.Store.
func (m *Store) AlertPage(_ context.Context, after int64, limit int) (list []queue.Alert, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range slices.Backward(m.alerts) {
		if len(list) < limit && (after == 0 || a.ID < after) {
			list = append(list, a.Alert)
		}
	}
	return list, nil
}

// Audit implements queue.Store.
func (m *Store) Audit(_ context.Context, e queue.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audit(e)
	return nil
}

// audit adds a line to the audit trail; m.mu is held.
func (m *Store) audit(e queue.Entry) {
	e.At = time.Now()
	m.audits = append(m.audits, e)
}

// AuditTrail implements queue.Store.
func (m *Store) AuditTrail(_ context.Context, limit int) (list []queue.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range slices.Backward(m.audits) {
		if len(list) < limit {
			list = append(list, e)
		}
	}
	return list, nil
}
