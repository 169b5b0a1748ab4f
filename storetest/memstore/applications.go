package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// PutApplication implements store.Store.
func (m *Store) PutApplication(_ context.Context, a webhook.Application) (webhook.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.applications[a.ID]
	if a.Version > 0 && a.Version != old.Version || a.Version < 0 && known {
		return a, fmt.Errorf("application %q: %w", a.ID, webhook.ErrVersion)
	}
	if a.Version <= 0 { // put blindly: see store.Store
		a.Suspended, a.Reason = old.Suspended, old.Reason
	}
	a.Version, a.Created = old.Version+1, old.Created
	if !known {
		a.Created = time.Now()
	}
	if m.applications == nil {
		m.applications = map[string]webhook.Application{}
	}
	m.applications[a.ID] = a
	for _, e := range m.endpoints { // to which it is a change
		if e.Application == a.ID && !e.deleted {
			e.Tenant = &a
			m.change(e)
		}
	}
	return a, nil
}

// Application implements store.Store.
func (m *Store) Application(_ context.Context, id string) (webhook.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.applications[id]
	if !ok {
		return a, fmt.Errorf("application %q: %w", id, webhook.ErrNotFound)
	}
	return a, nil
}

// endpointsOf counts the endpoints of an application. The caller holds mu.
func (m *Store) endpointsOf(application string) (n int) {
	for _, e := range m.endpoints {
		if e.Application == application && !e.deleted {
			n++
		}
	}
	return n
}

// tenant gives an endpoint that is to be stored its application, or refuses it. The
// caller holds mu.
func (m *Store) tenant(e *webhook.Endpoint, known bool) error {
	if e.Application == "" {
		return nil
	}
	a, ok := m.applications[e.Application]
	switch {
	case !ok:
		return fmt.Errorf("endpoint %q: %w %q", e.ID, webhook.ErrUnknownApplication, e.Application)
	case !known && m.endpointsOf(a.ID) >= a.Limit():
		return fmt.Errorf("application %q: %w: %d", a.ID, webhook.ErrTooManyEndpoints, a.Limit())
	}
	e.Tenant = &a
	return nil
}
