package memstore

import (
	"context"
	"time"
)

// Heartbeat implements store.Store.
func (m *Store) Heartbeat(_ context.Context, owner string, lease time.Duration) (live int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dispatchers == nil {
		m.dispatchers = map[string]time.Time{}
	}
	now := time.Now()
	m.dispatchers[owner] = now.Add(lease)
	for owner, expires := range m.dispatchers {
		if expires.Before(now) {
			delete(m.dispatchers, owner)
		}
	}
	return len(m.dispatchers), nil
}

// Leave implements store.Store.
func (m *Store) Leave(_ context.Context, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.dispatchers, owner)
	return nil
}
