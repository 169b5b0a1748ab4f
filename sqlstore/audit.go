package sqlstore

import (
	"context"
	"database/sql"

	"github.com/forbear-go/forbear/deadletter"
)

// The audit trail is only added to: nothing here changes or deletes a line.

// Audit implements deadletter.Store.
func (l *DeadLetters) Audit(ctx context.Context, e deadletter.Entry) error {
	return l.db.write(ctx, func(t *tx) error { return t.audit(e) })
}

// audit adds a line in the transaction of what it is about: neither is there
// without the other.
func (t *tx) audit(e deadletter.Entry) error {
	_, err := t.exec(`INSERT INTO forbear_audit (at, who, action, target, detail) VALUES ({t}, ?, ?, ?, ?)`, after(0), e.Who, e.Action, e.Target, e.Detail)
	return err
}

// AuditTrail implements deadletter.Store.
func (l *DeadLetters) AuditTrail(ctx context.Context, limit int) ([]deadletter.Entry, error) {
	return readAll(ctx, l.db, scanEntry, `SELECT at, who, action, target, detail FROM forbear_audit ORDER BY id DESC LIMIT ?`, limit)
}

// scanEntry reads one line of the audit trail.
func scanEntry(r *sql.Rows) (e deadletter.Entry, err error) {
	var us int64
	err = r.Scan(&us, &e.Who, &e.Action, &e.Target, &e.Detail)
	e.At = at(us)
	return e, err
}
