package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// What is stored of an endpoint: its configuration as a sealed text, which only
// PutEndpoint writes, and its state, which only SetEndpointState writes once it
// is there. Neither overwrites the other.
const (
	endpointState = ` RETURNING version, state, reason, since, COALESCE(failing_since, 0)`
	addEndpoint   = `INSERT INTO forbear_endpoints (id, spec, state, since) VALUES (?, ?, ?, {t}) ON CONFLICT (id) DO `
)

// PutEndpoint implements webhook.Store.
func (w *Webhooks) PutEndpoint(ctx context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	expected := e.Version
	e.Version, e.Held = 0, "" // not of the configuration
	e.Reason, e.Since, e.FailingSince = "", time.Time{}, time.Time{}
	e.State = cmp.Or(e.State, webhook.Enabled)
	plain, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	spec, err := w.db.sealText(plain)
	if err != nil {
		return e, err
	}
	// The comparison of versions is part of the write: two operators cannot
	// both win.
	text := addEndpoint + `UPDATE SET spec = EXCLUDED.spec, version = forbear_endpoints.version + 1` + endpointState
	args := []any{e.ID, spec, string(e.State), after(0)}
	switch {
	case expected == webhook.VersionNone:
		text = addEndpoint + `NOTHING` + endpointState
	case expected != 0:
		text = `UPDATE forbear_endpoints SET spec = ?, version = version + 1 WHERE id = ? AND version = ?` + endpointState
		args = []any{spec, e.ID, expected}
	}
	stored, err := do(ctx, w.db, func(t *tx) (*webhook.Endpoint, error) {
		return t.putEndpoint(e, text, slices.Clone(args)) // a replay wants them as they were
	})
	switch {
	case err != nil:
		return e, err
	// The condition on the version found no row.
	case stored == nil:
		return e, fmt.Errorf("endpoint %q: %w", e.ID, webhook.ErrVersion)
	}
	w.db.notify.wake()
	return *stored, nil
}

// putEndpoint runs one write of an endpoint and returns what is stored then;
// nil when the stored version was not the expected one, which is no error here:
// it would take the writes that share the transaction along.
func (t *tx) putEndpoint(e webhook.Endpoint, text string, args []any) (*webhook.Endpoint, error) {
	var state string
	var since, failing int64
	ok, err := t.row([]any{&e.Version, &state, &e.Reason, &since, &failing}, text, args...)
	if err != nil || !ok {
		return nil, err
	}
	e.State, e.Since, e.FailingSince = webhook.EndpointState(state), at(since), at(failing)
	return &e, nil
}

// Endpoints implements webhook.Store.
func (w *Webhooks) Endpoints(ctx context.Context) (list []webhook.Endpoint, err error) {
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var id, spec, state, reason string
		var since, failing, version int64
		if err := r.Scan(&id, &spec, &state, &reason, &since, &failing, &version); err != nil {
			return err
		}
		plain, err := w.db.unsealText(spec)
		if err != nil {
			return fmt.Errorf("endpoint %q: %w", id, err)
		}
		var e webhook.Endpoint
		if err := json.Unmarshal(plain, &e); err != nil {
			return fmt.Errorf("endpoint %q: %w", id, err)
		}
		e.State, e.Reason, e.Since = webhook.EndpointState(state), reason, at(since)
		e.FailingSince, e.Version = at(failing), version
		list = append(list, e)
		return nil
	}, `SELECT id, spec, state, reason, since, COALESCE(failing_since, 0), version FROM forbear_endpoints ORDER BY id`)
	return list, err
}

// SetEndpointState implements webhook.Store.
func (w *Webhooks) SetEndpointState(ctx context.Context, id string, state webhook.EndpointState, reason string, failing time.Time) error {
	err := w.db.write(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE forbear_endpoints SET since = CASE WHEN state = ? THEN since ELSE {t} END,
			state = ?, reason = ?, failing_since = ? WHERE id = ?`,
			string(state), after(0), string(state), reason, failing, id)
		if err == nil && n == 0 {
			return fmt.Errorf("endpoint %q: %w", id, own(webhook.ErrNotFound))
		}
		return err
	})
	w.db.notify.wake()
	return err
}
