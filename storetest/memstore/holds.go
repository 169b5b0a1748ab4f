package memstore

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// hold is a hold with the number of its latest change.
type hold struct {
	store.Hold
	due, expires time.Time
	changed      int64
}

// PutHolds implements store.Store.
func (m *Store) PutHolds(_ context.Context, owner string, list []store.HoldWrite) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holds == nil {
		m.holds = map[[2]string]*hold{}
	}
	for i := range list {
		m.putHold(owner, &list[i])
	}
	return nil
}

// putHold writes a hold; m.mu is held.
func (m *Store) putHold(owner string, w *store.HoldWrite) {
	key, now := [2]string{w.Endpoint, w.Kind}, time.Now()
	h := m.holds[key]
	goesOn := h != nil && !h.Over && h.expires.After(now)
	switch {
	case !goesOn && !w.Begins, goesOn && w.Begins && !w.Over:
		return
	case !goesOn:
		h = &hold{Hold: w.Hold}
		m.holds[key] = h
		if w.Alert.Queue != "" {
			m.raise(w.Alert)
		}
	case !w.Over:
		h.Why, h.Looks = w.Why, max(h.Looks, w.Looks)
	}
	m.holdChanges++
	h.Owner, h.Over, h.changed = owner, w.Over, m.holdChanges
	h.due, h.expires = now.Add(w.In), now.Add(store.HoldFor)
}

// dropHolds forgets those of an endpoint that is deleted; m.mu is held.
func (m *Store) dropHolds(endpoint string) {
	for key := range m.holds {
		if key[0] == endpoint {
			delete(m.holds, key)
		}
	}
}

// HoldChanges implements store.Store.
func (m *Store) HoldChanges(_ context.Context, since int64) (list []store.Hold, mark int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, h := range m.holds {
		if h.changed > since && h.expires.After(now) && (since > 0 || !h.Over) {
			h.In = h.due.Sub(now)
			list = append(list, h.Hold)
		}
	}
	return list, m.holdChanges, nil
}
