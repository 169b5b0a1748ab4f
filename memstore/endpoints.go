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

// Version is the expectation: 0 writes unconditionally, a positive one
// replaces that version alone, and webhook.VersionNone demands that there is
// no such endpoint yet.
// PutEndpoint implements webhook.Store.
func (m *Store) PutEndpoint(_ context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.endpoints[e.ID]
	// The comparison and the write are one step, under the lock.
	if e.Version > 0 && e.Version != old.Version || e.Version < 0 && known {
		return e, fmt.Errorf("endpoint %q: %w", e.ID, webhook.ErrVersion)
	}
	// A configuration changes no state: only SetEndpointState does.
	e.Version, e.Held = old.Version+1, ""
	if known {
		e.State, e.Reason, e.Since, e.FailingSince = old.State, old.Reason, old.Since, old.FailingSince
	} else {
		e.State, e.Reason, e.Since, e.FailingSince = cmp.Or(e.State, webhook.Enabled), "", time.Now(), time.Time{}
	}
	if m.endpoints == nil {
		m.endpoints = map[string]webhook.Endpoint{}
	}
	m.endpoints[e.ID] = e
	return e, nil
}

// They come in the order of their ids, so that two listings can be compared.
// Endpoints implements webhook.Store.
func (m *Store) Endpoints(context.Context) ([]webhook.Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	byID := func(a, b webhook.Endpoint) int { return cmp.Compare(a.ID, b.ID) }
	return slices.SortedFunc(maps.Values(m.endpoints), byID), nil
}

// Since moves only when the state does: an endpoint that fails again while
// it is disabled has been disabled since the first time.
// SetEndpointState implements webhook.Store.
func (m *Store) SetEndpointState(_ context.Context, id string, s webhook.EndpointState, reason string, failing time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.endpoints[id]
	if !ok {
		return fmt.Errorf("endpoint %q: %w", id, webhook.ErrNotFound)
	}
	if e.State != s {
		e.Since = time.Now()
	}
	e.State, e.Reason, e.FailingSince = s, reason, failing
	m.endpoints[id] = e
	return nil
}
