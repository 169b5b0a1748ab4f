package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// What is stored of an endpoint: its configuration as a sealed text, which only
// PutEndpoint writes, and its state, which only SetEndpointState writes once it
// is there. Neither overwrites the other.
//
// Each change has a number, so that who has read the changes up to one reads
// those behind it next. It is one more than the highest, and taken under a lock
// that is held until the commit: numbers become visible in their order, and none
// is passed over. A deleted endpoint stays as a row without its configuration,
// or no one would learn that it is gone; its version goes on when it is put again, by
// its own application alone: its history and its letters are found by its id.
const (
	endpointState = ` RETURNING version, state, disabled_by, reason, since, COALESCE(failing_since, 0)`
	nextChange    = `(SELECT COALESCE(max(changed), 0) + 1 FROM forbear_endpoints)`
	addEndpoint   = `INSERT INTO forbear_endpoints (id, spec, state, application, since, changed) VALUES (?, ?, ?, ?, {t}, ` + nextChange + `) ON CONFLICT (id) DO UPDATE SET spec = EXCLUDED.spec, version = forbear_endpoints.version + 1, application = EXCLUDED.application, changed = EXCLUDED.changed, deleted = NULL`
	// What was deleted has the state of a new endpoint when it comes back, unless the
	// operator has disabled it: its application would enable it so.
	staysDisabled = `forbear_endpoints.application IS NOT NULL AND forbear_endpoints.disabled_by = '` + string(webhook.ByOperator) + `'`
	anewEndpoint  = `, state = CASE WHEN ` + staysDisabled + ` THEN forbear_endpoints.state ELSE EXCLUDED.state END, since = CASE WHEN ` + staysDisabled + ` THEN forbear_endpoints.since ELSE EXCLUDED.since END,
		reason = CASE WHEN ` + staysDisabled + ` THEN forbear_endpoints.reason ELSE '' END, disabled_by = CASE WHEN ` + staysDisabled + ` THEN forbear_endpoints.disabled_by ELSE '' END,
		failing_since = NULL WHERE forbear_endpoints.deleted IS NOT NULL`
)

// PutEndpoint implements store.Store.
func (w *Webhooks) PutEndpoint(ctx context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	expected := e.Version
	e.Version, e.Held, e.Error = 0, "", "" // not of the configuration
	e.DisabledBy, e.Reason, e.Since, e.FailingSince = "", "", time.Time{}, time.Time{}
	e.State = cmp.Or(e.State, webhook.Enabled)
	spec, err := w.db.sealJSON(place("endpoints.spec", e.ID), e)
	if err != nil {
		return e, err
	}
	// The comparison of versions is part of the write: two operators cannot
	// both win.
	stored, err := do(ctx, w.db, func(t *tx) (*webhook.Endpoint, error) { return t.putEndpoint(e, spec, expected) })
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

// putEndpoint writes an endpoint and returns what is stored then; nil when the
// stored version was not the expected one, which is no error here: it would take
// the writes that share the transaction along.
func (t *tx) putEndpoint(e webhook.Endpoint, spec string, expected int64) (*webhook.Endpoint, error) {
	if err := t.db.d.lock(t, endpointLock); err != nil {
		return nil, err
	}
	var err error
	if err := t.deleting(e.ID); err != nil {
		return nil, err
	}
	if expected != webhook.VersionNone {
		if err := t.readable(e.ID); err != nil {
			return nil, err
		}
	}
	if e.Tenant, err = t.tenant(e); err != nil {
		return nil, err
	}
	if expected <= 0 { // none, or any: a deleted one is none
		write := func(text string) (*webhook.Endpoint, error) {
			return t.writeEndpoint(e, text, e.ID, spec, string(e.State), null(e.Application), after(0))
		}
		stored, err := write(addEndpoint + anewEndpoint)
		if err != nil || stored != nil || expected == webhook.VersionNone {
			return stored, err
		}
		return write(addEndpoint)
	}
	return t.writeEndpoint(e, `UPDATE forbear_endpoints SET spec = ?, version = version + 1, changed = `+nextChange+` WHERE id = ? AND version = ? AND deleted IS NULL`, spec, e.ID, expected)
}

// readable refuses to replace an endpoint whose configuration cannot be read: who puts
// another cannot have seen what goes.
func (t *tx) readable(id string) error {
	var spec string
	found, err := t.row([]any{&spec}, `SELECT spec FROM forbear_endpoints WHERE id = ? AND deleted IS NULL`, id)
	if err != nil || !found {
		return err
	}
	if _, err := t.db.unsealText(place("endpoints.spec", id), spec); err != nil {
		return own(fmt.Errorf("endpoint %q %w: %w", id, webhook.ErrUnreadable, err))
	}
	return nil
}

// writeEndpoint runs one write of an endpoint and returns what is stored then;
// nil when its condition found no row.
func (t *tx) writeEndpoint(e webhook.Endpoint, text string, args ...any) (*webhook.Endpoint, error) {
	var state string
	var since, failing int64
	ok, err := t.row([]any{&e.Version, &state, &e.DisabledBy, &e.Reason, &since, &failing}, text+endpointState, args...)
	if err != nil || !ok {
		return nil, err
	}
	e.State, e.Since, e.FailingSince = webhook.EndpointState(state), at(since), at(failing)
	return &e, nil
}

// DeleteEndpoint implements store.Store.
func (w *Webhooks) DeleteEndpoint(ctx context.Context, id string, version int64) error {
	n, err := do(ctx, w.db, func(t *tx) (int64, error) {
		if err := t.db.d.lock(t, endpointLock); err != nil {
			return 0, err
		}
		n, err := t.exec(`UPDATE forbear_endpoints SET deleted = {t}, spec = '', changed = `+nextChange+`
			WHERE id = ? AND deleted IS NULL AND (? = 0 OR version = ?)`, after(0), id, version, version)
		if err == nil && n > 0 {
			err = t.dropHolds(id)
		}
		return n, err
	})
	if err == nil && n == 0 {
		// Which of the two it was: there is none, or another version.
		if _, err = w.Endpoint(ctx, id); err == nil || errors.Is(err, webhook.ErrUnreadable) {
			err = fmt.Errorf("endpoint %q: %w", id, webhook.ErrVersion)
		}
		return err
	}
	w.db.notify.wake()
	return err
}

// selectEndpoints reads what scanEndpoint wants.
const selectEndpoints = `SELECT e.id, e.spec, e.state, e.disabled_by, e.reason, e.since, COALESCE(e.failing_since, 0), e.version, e.changed, e.deleted IS NOT NULL, COALESCE(e.application, ''), COALESCE(a.id, ''), COALESCE(a.spec, ''), COALESCE(a.version, 0), COALESCE(a.created, 0), a.suspended IS NOT NULL, COALESCE(a.reason, '')
	FROM forbear_endpoints e LEFT JOIN forbear_applications a ON a.id = e.application`

// endpointRow is an endpoint with the number of its latest change.
type endpointRow struct {
	webhook.Endpoint
	changed int64
	deleted bool // of the endpoint there is the id alone
	// unreadable is why its configuration is missing, as Error has it; nil where it is there.
	unreadable error
}

// endpointRows returns the endpoints of a condition, those that were deleted and those
// that cannot be read included.
func (w *Webhooks) endpointRows(ctx context.Context, condition string, args ...any) ([]endpointRow, error) {
	return readAll(ctx, w.db, w.db.scanEndpoint, selectEndpoints+condition, args...)
}

// scanEndpoint reads an endpoint, and unseals its configuration and its application's.
func (db *DB) scanEndpoint(r *sql.Rows) (row endpointRow, err error) {
	var id, spec, state, by, reason, application string
	var since, failing, version int64
	var tenant applicationRow
	columns := []any{&id, &spec, &state, &by, &reason, &since, &failing, &version, &row.changed, &row.deleted, &application}
	if err := r.Scan(append(columns, tenant.columns()...)...); err != nil {
		return row, err
	}
	if row.deleted {
		row.ID = id
		return row, nil
	}
	err = db.unsealJSON(place("endpoints.spec", id), spec, &row.Endpoint)
	if err == nil && row.Application != "" {
		var a webhook.Application
		if a, err = db.application(tenant); err != nil {
			err = fmt.Errorf("its %w", err)
		}
		row.Tenant = &a
	}
	if err != nil {
		row.Endpoint = webhook.Endpoint{ID: id, Application: application, Tenant: &webhook.Application{ID: application, Suspended: tenant.suspended, Reason: tenant.reason}}
		row.unreadable = fmt.Errorf("endpoint %q %w: %w", id, webhook.ErrUnreadable, err)
		row.Error = row.unreadable.Error()
	}
	row.State, row.DisabledBy, row.Reason, row.Since = webhook.EndpointState(state), webhook.Party(by), reason, at(since)
	row.FailingSince, row.Version = at(failing), version
	return row, nil
}

// Endpoint implements store.Store.
func (w *Webhooks) Endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	list, err := w.endpointRows(ctx, ` WHERE e.id = ? AND e.deleted IS NULL`, id)
	row, err := first(list, err, fmt.Errorf("endpoint %q: %w", id, webhook.ErrNotFound))
	return row.Endpoint, cmp.Or(err, row.unreadable)
}

// Endpoints implements store.Store.
func (w *Webhooks) Endpoints(ctx context.Context) ([]webhook.Endpoint, error) {
	list, _, err := w.EndpointPage(ctx, store.EndpointFilter{}, "", math.MaxInt32)
	return list, err
}

// EndpointPage returns up to limit endpoints that a filter chooses, in the order of their
// ids, from the one behind after on, and where the next page begins: "" when this was the
// last. With a text it looks for a bounded time: a page may be short when there is a next.
func (w *Webhooks) EndpointPage(ctx context.Context, f store.EndpointFilter, after string, limit int) (list []webhook.Endpoint, next string, err error) {
	text, args := selectEndpoints+` WHERE e.deleted IS NULL AND e.id > ?`, []any{after}
	where := func(condition string, values ...any) { text, args = text+condition, append(args, values...) }
	if f.Application != "" {
		where(` AND e.application = ?`, f.Application)
	}
	if f.State != "" {
		where(` AND e.state = ?`, string(f.State))
	}
	if f.Text != "" {
		// What is encrypted is compared below; the rest is chosen roughly, by its JSON, which
		// has the id, too.
		quoted, err := json.Marshal(strings.ToLower(f.Text))
		if err != nil {
			return nil, "", err
		}
		part := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(string(quoted[1 : len(quoted)-1]))
		where(` AND (e.spec LIKE ? OR lower(e.spec) LIKE ? ESCAPE '\')`, sealedText+"%", "%"+part+"%")
	}
	where(` ORDER BY e.id`)
	if f.Text == "" {
		where(` LIMIT ?`, limit)
	}
	began := time.Now()
	err = w.db.each(ctx, func(r *sql.Rows) error {
		row, err := w.db.scanEndpoint(r)
		if err != nil {
			return err
		}
		if f.Chooses(&row.Endpoint) {
			list = append(list, row.Endpoint)
		}
		if len(list) == limit || f.Text != "" && time.Since(began) > lookFor {
			next = row.ID
			return errFull
		}
		return nil
	}, text, args...)
	if errors.Is(err, errFull) {
		err = nil
	}
	return list, next, err
}

// EndpointStates returns the state of each endpoint by its id. It reads no
// configuration.
func (w *Webhooks) EndpointStates(ctx context.Context) (map[string]webhook.EndpointState, error) {
	states := map[string]webhook.EndpointState{}
	err := w.db.each(ctx, func(r *sql.Rows) error {
		var id, state string
		err := r.Scan(&id, &state)
		states[id] = webhook.EndpointState(state)
		return err
	}, `SELECT id, state FROM forbear_endpoints WHERE deleted IS NULL`)
	return states, err
}

// EndpointChanges implements store.Store.
func (w *Webhooks) EndpointChanges(ctx context.Context, since int64) (c store.EndpointChanges, err error) {
	// The upper bound lets PostgreSQL expect a few rows, and not a third of all.
	rows, err := w.endpointRows(ctx, ` WHERE e.changed > ? AND e.changed <= ?`, since, int64(math.MaxInt64))
	c.Mark = since
	for _, row := range rows {
		c.Mark = max(c.Mark, row.changed)
		switch {
		case row.deleted:
			c.Deleted = append(c.Deleted, row.ID)
		case row.unreadable != nil:
			c.Unreadable = append(c.Unreadable, store.UnreadableEndpoint{Endpoint: row.Endpoint, Err: row.unreadable})
		default:
			c.Endpoints = append(c.Endpoints, row.Endpoint)
		}
	}
	return c, err
}

// SetEndpointState implements store.Store. Another state is a change that others
// have to read; how long the endpoint has been failing is not.
func (w *Webhooks) SetEndpointState(ctx context.Context, id string, state webhook.EndpointState, by webhook.Party, reason string, failing time.Time) error {
	moved, err := do(ctx, w.db, func(t *tx) (bool, error) {
		if by == webhook.ByForbear {
			n, err := t.exec(`UPDATE forbear_endpoints SET failing_since = ? WHERE id = ? AND (state = ? OR ? = '`+string(webhook.Enabled)+`') AND deleted IS NULL`,
				failing, id, string(state), string(state))
			if err != nil || n > 0 {
				return false, err
			}
		}
		return t.setState(webhook.Endpoint{ID: id, State: state, DisabledBy: by, Reason: reason, FailingSince: failing})
	})
	if moved && err == nil {
		w.db.notify.wake()
	}
	return err
}

// setState writes the state of an endpoint, in the name of a party, and reports whether
// it did.
func (t *tx) setState(e webhook.Endpoint) (moved bool, err error) {
	if err := t.db.d.lock(t, endpointLock); err != nil {
		return false, err
	}
	is := webhook.Endpoint{ID: e.ID}
	found, err := t.row([]any{&is.State, &is.DisabledBy, &is.Reason}, `SELECT state, disabled_by, reason FROM forbear_endpoints WHERE id = ? AND deleted IS NULL`, e.ID)
	if err == nil && !found {
		err = own(fmt.Errorf("endpoint %q: %w", e.ID, webhook.ErrNotFound))
	}
	if err != nil {
		return false, err
	}
	if stays := is.StaysDisabled(); stays != nil && e.DisabledBy != webhook.ByOperator {
		if e.State == webhook.Enabled {
			return false, own(stays)
		}
		return false, nil
	}
	if e.DisabledBy == webhook.ByForbear {
		if is.State == e.State { // another process was first
			return false, nil
		}
		t.raise(store.DisabledAlert(e.ID, e.Reason))
	}
	if e.State == webhook.Enabled {
		e.DisabledBy = ""
	}
	_, err = t.exec(`UPDATE forbear_endpoints SET since = CASE WHEN state = ? THEN since ELSE {t} END, state = ?, disabled_by = ?, reason = ?, failing_since = ?, changed = `+nextChange+` WHERE id = ?`,
		string(e.State), after(0), string(e.State), string(e.DisabledBy), e.Reason, e.FailingSince, e.ID)
	return err == nil, err
}
