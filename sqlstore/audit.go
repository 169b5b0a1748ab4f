package sqlstore

import (
	"context"
	"database/sql"
	"math"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// The audit trail is only added to: nothing here changes or deletes a line.

// Audit implements queue.Store.
func (l *DeadLetters) Audit(ctx context.Context, e queue.Entry) error {
	return l.db.write(ctx, func(t *tx) error { return t.audit(e) })
}

// audit adds a line in the transaction of what it is about: neither is there
// without the other.
func (t *tx) audit(e queue.Entry) error {
	_, err := t.exec(`INSERT INTO forbear_audit (at, who, action, target, detail) VALUES ({t}, ?, ?, ?, ?)`, after(0), e.Who, e.Action, e.Target, e.Detail)
	return err
}

// auditColumns are what scanEntry reads.
const auditColumns = `id, at, who, action, target, detail`

// AuditTrail implements queue.Store.
func (l *DeadLetters) AuditTrail(ctx context.Context, limit int) ([]queue.Entry, error) {
	return readAll(ctx, l.db, scanEntry, `SELECT `+auditColumns+` FROM forbear_audit ORDER BY id DESC LIMIT ?`, limit)
}

// AuditPage returns up to limit lines that a filter chooses, the newest first, from
// before on, which is the next of an earlier page and 0 at first. It looks at a bounded
// number of lines: a page may be short, or empty, when next says that there are more.
func (l *DeadLetters) AuditPage(ctx context.Context, f queue.AuditFilter, before int64, limit int) (list []queue.Entry, next int64, err error) {
	top, latest := int64(math.MaxInt64), int64(0)
	if before > 0 {
		top = before
	}
	// Not the number itself: there may be gaps of any size.
	err = l.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&top) }, `SELECT COALESCE(max(id), 0) FROM forbear_audit WHERE id < ?`, top)
	if err != nil || top == 0 {
		return nil, 0, err
	}
	floor := max(top-maxLook, 0)
	text, args := `SELECT `+auditColumns+` FROM forbear_audit WHERE id > ? AND id <= ?`, []any{floor, top}
	where := func(condition string, values ...any) { text, args = text+" AND "+condition, append(args, values...) }
	if f.Who != "" { // the token, or the caller's own word
		where(`(who = ? OR substr(who, 1, ?) = ? OR replace(who, ?, '') <> who)`, f.Who, len([]rune(f.Who))+1, f.Who+" ", "("+f.Who+") at ")
	}
	if f.Action != "" {
		where(`action = ?`, f.Action)
	}
	if f.Target != "" {
		where(`target = ?`, f.Target)
	}
	if !f.Since.IsZero() {
		where(`at >= ?`, f.Since)
	}
	if !f.Until.IsZero() {
		where(`at < ?`, f.Until)
	}
	list, err = readAll(ctx, l.db, scanEntry, text+` ORDER BY id DESC LIMIT ?`, append(args, limit)...)
	switch {
	case err != nil:
		return nil, 0, err
	case len(list) == limit:
		return list, list[limit-1].Number, nil
	case floor == 0:
		return list, 0, nil
	case !f.Since.IsZero(): // all of the window may be too old, and what is below is older
		err = l.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&latest) }, `SELECT COALESCE(max(at), 0) FROM forbear_audit WHERE id > ? AND id <= ?`, floor, top)
		if err != nil || latest < f.Since.Add(-clockSkew).UnixMicro() {
			return list, 0, err
		}
	}
	return list, floor + 1, nil
}

// scanEntry reads one line of the audit trail.
func scanEntry(r *sql.Rows) (e queue.Entry, err error) {
	var us int64
	err = r.Scan(&e.Number, &us, &e.Who, &e.Action, &e.Target, &e.Detail)
	e.At = at(us)
	return e, err
}
