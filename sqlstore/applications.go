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

// Applications are written under the lock of the endpoints: what is counted and
// compared here stays so until the commit. To its endpoints a change of an application
// is one of theirs.

// PutApplication implements store.Store.
func (w *Webhooks) PutApplication(ctx context.Context, a webhook.Application) (webhook.Application, error) {
	expected, suspended, reason := a.Version, a.Suspended, a.Reason
	a.Version, a.Created, a.Suspended, a.Reason, a.Error = 0, time.Time{}, false, "", "" // not of the configuration
	spec, err := w.db.sealJSON(place("applications.spec", a.ID), a)
	if err != nil {
		return a, err
	}
	const (
		add    = `INSERT INTO forbear_applications (id, spec, created) VALUES (?, ?, {t}) ON CONFLICT (id) DO `
		result = ` RETURNING version, created, suspended IS NOT NULL, reason`
	)
	text := add + `UPDATE SET spec = EXCLUDED.spec, version = forbear_applications.version + 1` + result
	args := []any{a.ID, spec, after(0)}
	switch {
	case expected == webhook.VersionNone:
		text = add + `NOTHING` + result
	case expected != 0:
		since := `NULL`
		if suspended {
			since = `COALESCE(suspended, {t})`
			args = []any{spec, after(0), reason, a.ID, expected}
		} else {
			args = []any{spec, reason, a.ID, expected}
		}
		text = `UPDATE forbear_applications SET spec = ?, suspended = ` + since + `, reason = ?, version = version + 1 WHERE id = ? AND version = ?` + result
	}
	type put struct {
		webhook.Application
		ok bool
	}
	// A caller that leaves must not meet the write in its own copy.
	stored, err := do(ctx, w.db, func(t *tx) (p put, err error) {
		if err := t.db.d.lock(t, endpointLock); err != nil {
			return p, err
		}
		var created int64
		p.Application = a
		p.ok, err = t.row([]any{&p.Version, &created, &p.Suspended, &p.Reason}, text, slices.Clone(args)...) // a replay wants them as they were
		if p.Created = at(created); err == nil && p.ok {
			_, err = t.exec(`UPDATE forbear_endpoints SET changed = `+nextChange+` WHERE application = ? AND deleted IS NULL`, a.ID)
		}
		return p, err
	})
	switch {
	case err == nil && !stored.ok:
		err = fmt.Errorf("application %q: %w", a.ID, webhook.ErrVersion)
	case err == nil:
		a = stored.Application
	}
	w.db.notify.wake()
	return a, err
}

// Application implements store.Store.
func (w *Webhooks) Application(ctx context.Context, id string) (webhook.Application, error) {
	var unreadable error
	list, err := readAll(ctx, w.db, func(r *sql.Rows) (a webhook.Application, err error) {
		a, unreadable, err = w.db.scanApplication(r)
		return a, err
	}, selectApplication+` WHERE id = ?`, id)
	a, err := first(list, err, fmt.Errorf("application %q: %w", id, webhook.ErrNotFound))
	return a, cmp.Or(err, unreadable)
}

// Applications implements store.Store.
func (w *Webhooks) Applications(ctx context.Context, after string, limit int) ([]webhook.Application, error) {
	return readAll(ctx, w.db, func(r *sql.Rows) (webhook.Application, error) {
		a, _, err := w.db.scanApplication(r) // Error has why it cannot be read
		return a, err
	}, selectApplication+` WHERE id > ? ORDER BY id LIMIT ?`, after, limit)
}

// selectApplication reads what [DB.scanApplication] wants.
const selectApplication = `SELECT id, spec, version, created, suspended IS NOT NULL, reason FROM forbear_applications`

// applicationRow has the columns of an application.
type applicationRow struct {
	id, spec, reason string
	version, created int64
	suspended        bool
}

// columns are where a row's columns are scanned to, in the order of selectApplication.
func (c *applicationRow) columns() []any {
	return []any{&c.id, &c.spec, &c.version, &c.created, &c.suspended, &c.reason}
}

// scanApplication reads an application, and why its configuration is missing; nil where it
// is there.
func (db *DB) scanApplication(r *sql.Rows) (a webhook.Application, unreadable, err error) {
	var c applicationRow
	if err := r.Scan(c.columns()...); err != nil {
		return a, nil, err
	}
	a, unreadable = db.application(c)
	return a, unreadable, nil
}

// application makes an application of its columns. One that cannot be read comes with its
// error.
func (db *DB) application(c applicationRow) (a webhook.Application, err error) {
	if err = db.unsealJSON(place("applications.spec", c.id), c.spec, &a); err != nil {
		err = fmt.Errorf("application %q %w: %w", c.id, webhook.ErrUnreadable, err)
		a = webhook.Application{ID: c.id, Error: err.Error()}
	}
	a.Version, a.Created, a.Suspended, a.Reason = c.version, at(c.created), c.suspended, c.reason
	return a, err
}

// DeleteApplication implements store.Store. Its tokens go with it.
func (w *Webhooks) DeleteApplication(ctx context.Context, id string, version int64) error {
	return w.db.write(ctx, func(t *tx) error {
		if err := t.db.d.lock(t, endpointLock); err != nil {
			return err
		}
		switch n, err := t.endpointsOf(id); {
		case err != nil:
			return err
		case n > 0:
			return own(fmt.Errorf("application %q: %w", id, webhook.ErrInUse))
		}
		var stored int64
		switch known, err := t.row([]any{&stored}, `SELECT version FROM forbear_applications WHERE id = ?`, id); {
		case err != nil:
			return err
		case !known:
			return own(fmt.Errorf("application %q: %w", id, webhook.ErrNotFound))
		case version != 0 && version != stored:
			return own(fmt.Errorf("application %q: %w", id, webhook.ErrVersion))
		}
		_, err := t.exec(`DELETE FROM forbear_applications WHERE id = ?`, id)
		if err == nil { // or they would be good for the next one of this id
			_, err = t.exec(`DELETE FROM forbear_tokens WHERE application = ?`, id)
		}
		return err
	})
}

// tenant returns the application of an endpoint that is to be written, or nil. It
// refuses one that the endpoint cannot have.
func (t *tx) tenant(e webhook.Endpoint) (*webhook.Application, error) {
	var is string
	var there bool
	known, err := t.row([]any{&is, &there}, `SELECT COALESCE(application, ''), deleted IS NULL FROM forbear_endpoints WHERE id = ?`, e.ID)
	switch {
	case err != nil:
		return nil, err
	case known && is != e.Application:
		return nil, own(fmt.Errorf("endpoint %q: %w", e.ID, webhook.ErrTaken))
	case e.Application == "":
		return nil, nil
	}
	list, err := collect(t, func(r *sql.Rows) (webhook.Application, error) {
		a, unreadable, err := t.db.scanApplication(r)
		if unreadable != nil {
			err = own(fmt.Errorf("endpoint %q: its %w", e.ID, unreadable))
		}
		return a, err
	}, selectApplication+` WHERE id = ?`, e.Application)
	a, err := first(list, err, own(fmt.Errorf("endpoint %q: %w %q: add it first with PUT /v1/applications/{id} or forbear applications add", e.ID, webhook.ErrUnknownApplication, e.Application)))
	if err != nil || there {
		return &a, err
	}
	n, err := t.endpointsOf(a.ID)
	if err == nil && n >= a.Limit() {
		err = own(fmt.Errorf("application %q: %w: %d", a.ID, webhook.ErrTooManyEndpoints, a.Limit()))
	}
	return &a, err
}

// endpointsOf counts the endpoints of an application.
func (t *tx) endpointsOf(application string) (n int, err error) {
	_, err = t.row([]any{&n}, `SELECT count(*) FROM forbear_endpoints WHERE application = ? AND deleted IS NULL`, application)
	return n, err
}

// null returns a text, or NULL for an empty one.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// sealJSON seals the JSON of v, and unsealJSON is its inverse.
func (db *DB) sealJSON(at cell, v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return db.sealText(at, plain)
}

func (db *DB) unsealJSON(at cell, text string, v any) error {
	plain, err := db.unsealText(at, text)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}
