package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// endpoint is an endpoint with the number of its latest change. One that was
// deleted stays, so that others learn of it and its version goes on.
type endpoint struct {
	webhook.Endpoint
	changed int64
	deleted bool
}

// endpoint returns what is stored under an id, unless it was deleted.
func (m *Store) endpoint(id string) (*endpoint, error) {
	if e := m.endpoints[id]; e != nil && !e.deleted {
		return e, nil
	}
	return nil, fmt.Errorf("endpoint %q: %w", id, webhook.ErrNotFound)
}

// applicationOf returns the application of an endpoint that is, or was.
func (m *Store) applicationOf(id string) string {
	if e := m.endpoints[id]; e != nil {
		return e.Application
	}
	return ""
}

// change numbers a change.
func (m *Store) change(e *endpoint) {
	m.changes++
	e.changed = m.changes
}

// Version is the expectation: 0 writes unconditionally, a positive one
// replaces that version alone, and webhook.VersionNone demands that there is
// no such endpoint yet.
// PutEndpoint implements store.Store.
func (m *Store) PutEndpoint(_ context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.endpoints[e.ID]
	known := old != nil && !old.deleted
	// The comparison and the write are one step, under the lock.
	if e.Version > 0 && (!known || e.Version != old.Version) || e.Version < 0 && known {
		return e, fmt.Errorf("endpoint %q: %w", e.ID, webhook.ErrVersion)
	}
	if old != nil && old.deleted && m.deleting(e.ID) {
		return e, store.ErrDeleting
	}
	if old == nil {
		old = &endpoint{}
	}
	if old.Version > 0 && e.Application != old.Application {
		return e, fmt.Errorf("endpoint %q: %w", e.ID, webhook.ErrTaken)
	}
	if err := m.tenant(&e, known); err != nil {
		return e, err
	}
	// A configuration changes no state: only SetEndpointState does.
	e.Version, e.Held = old.Version+1, ""
	if known {
		e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince = old.State, old.DisabledBy, old.Reason, old.Since, old.FailingSince
	} else {
		e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince = cmp.Or(e.State, webhook.Enabled), "", "", time.Now(), time.Time{}
		if old.StaysDisabled() != nil && e.Application != "" {
			e.State, e.DisabledBy, e.Reason, e.Since = old.State, old.DisabledBy, old.Reason, old.Since
		}
	}
	if m.endpoints == nil {
		m.endpoints = map[string]*endpoint{}
	}
	m.endpoints[e.ID] = &endpoint{Endpoint: e}
	m.change(m.endpoints[e.ID])
	return e, nil
}

// Endpoint implements store.Store.
func (m *Store) Endpoint(_ context.Context, id string) (webhook.Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.endpoint(id)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	return e.Endpoint, nil
}

// Endpoints implements store.Store.
func (m *Store) Endpoints(ctx context.Context) ([]webhook.Endpoint, error) {
	c, err := m.EndpointChanges(ctx, 0)
	// In the order of their ids, so that two listings can be compared.
	slices.SortFunc(c.Endpoints, func(a, b webhook.Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return c.Endpoints, err
}

// EndpointChanges implements store.Store.
func (m *Store) EndpointChanges(_ context.Context, since int64) (store.EndpointChanges, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := store.EndpointChanges{Mark: m.changes}
	if since == m.changes {
		return c, nil
	}
	for id, e := range m.endpoints {
		switch {
		case e.changed <= since:
		case e.deleted:
			c.Deleted = append(c.Deleted, id)
		default:
			c.Endpoints = append(c.Endpoints, e.Endpoint)
		}
	}
	return c, nil
}

// DeleteEndpoint implements store.Store.
func (m *Store) DeleteEndpoint(_ context.Context, id string, version int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.endpoint(id)
	if err != nil {
		return err
	}
	if version != 0 && version != e.Version {
		return fmt.Errorf("endpoint %q: %w", id, webhook.ErrVersion)
	}
	gone := webhook.Endpoint{ID: id, Application: e.Application, Version: e.Version}
	gone.State, gone.DisabledBy, gone.Reason, gone.Since = e.State, e.DisabledBy, e.Reason, e.Since
	m.endpoints[id] = &endpoint{Endpoint: gone, deleted: true}
	m.change(m.endpoints[id])
	m.dropHolds(id)
	return nil
}

// Since moves only when the state does: an endpoint that fails again while
// it is disabled has been disabled since the first time.
// SetEndpointState implements store.Store.
func (m *Store) SetEndpointState(_ context.Context, id string, s webhook.EndpointState, by webhook.Party, reason string, failing time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.endpoint(id)
	if err != nil {
		return err
	}
	switch {
	case by == webhook.ByForbear && (s == webhook.Enabled || e.State == s):
		e.FailingSince = failing
		return nil
	case by == webhook.ByTenant && e.StaysDisabled() != nil:
		if s == webhook.Enabled {
			return e.StaysDisabled()
		}
		return nil
	}
	if e.State != s {
		e.Since = time.Now()
	}
	if by == webhook.ByForbear {
		m.raise(store.DisabledAlert(id, reason))
	}
	m.change(e)
	e.State, e.DisabledBy, e.Reason, e.FailingSince = s, by, reason, failing
	if s == webhook.Enabled {
		e.DisabledBy = ""
	}
	return nil
}
