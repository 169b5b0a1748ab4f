package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
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

// Applications implements store.Store.
func (m *Store) Applications(_ context.Context, after string, limit int) ([]webhook.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.SortedFunc(maps.Values(m.applications), func(a, b webhook.Application) int { return cmp.Compare(a.ID, b.ID) })
	list = slices.DeleteFunc(list, func(a webhook.Application) bool { return a.ID <= after })
	return list[:min(limit, len(list))], nil
}

// DeleteApplication implements store.Store.
func (m *Store) DeleteApplication(_ context.Context, id string, version int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch a, ok := m.applications[id]; {
	case !ok:
		return fmt.Errorf("application %q: %w", id, webhook.ErrNotFound)
	case version != 0 && version != a.Version:
		return fmt.Errorf("application %q: %w", id, webhook.ErrVersion)
	case m.endpointsOf(id) > 0:
		return fmt.Errorf("application %q: %w", id, webhook.ErrInUse)
	}
	delete(m.applications, id)
	return nil
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
