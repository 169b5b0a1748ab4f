package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// PutEndpoint implements webhook.Store.
func (s *Store) PutEndpoint(ctx context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	if e.State == "" {
		e.State = webhook.Enabled
	}
	plain, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	spec, err := s.sealText(plain)
	if err != nil {
		return e, err
	}
	version, err := do(ctx, s, func(t *tx) (v int64, err error) {
		_, err = t.row([]any{&v}, `INSERT INTO forbear_endpoints (id, spec, state, since) VALUES (?, ?, ?, {t})
			ON CONFLICT (id) DO UPDATE SET spec = EXCLUDED.spec, version = forbear_endpoints.version + 1 RETURNING version`,
			e.ID, spec, string(e.State), after(0))
		return v, err
	})
	e.Version = version
	s.notify.wake()
	return e, err
}

// Endpoints implements webhook.Store.
func (s *Store) Endpoints(ctx context.Context) (list []webhook.Endpoint, err error) {
	err = s.query(ctx, func(r *sql.Rows) error {
		var id, spec, state, reason string
		var since, failing, version int64
		if err := r.Scan(&id, &spec, &state, &reason, &since, &failing, &version); err != nil {
			return err
		}
		plain, err := s.unsealText(spec)
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
func (s *Store) SetEndpointState(ctx context.Context, id string, state webhook.EndpointState, reason string, failing time.Time) error {
	err := s.write(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE forbear_endpoints SET since = CASE WHEN state = ? THEN since ELSE {t} END,
			state = ?, reason = ?, failing_since = ? WHERE id = ?`,
			string(state), after(0), string(state), reason, failing, id)
		if err == nil && n == 0 {
			return fmt.Errorf("endpoint %q: %w", id, own(webhook.ErrNotFound))
		}
		return err
	})
	s.notify.wake()
	return err
}
