package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// Audit implements deadletter.Store.
func (s *Store) Audit(ctx context.Context, e deadletter.Entry) error {
	return s.write(ctx, func(t *tx) error { return t.audit(e) })
}

func (t *tx) audit(e deadletter.Entry) error {
	_, err := t.exec(`INSERT INTO forbear_audit (at, who, action, target, detail) VALUES ({t}, ?, ?, ?, ?)`, after(0), e.Who, e.Action, e.Target, e.Detail)
	return err
}

// Audits implements deadletter.Store.
func (s *Store) Audits(ctx context.Context, limit int) (list []deadletter.Entry, err error) {
	err = s.query(ctx, func(r *sql.Rows) error {
		var e deadletter.Entry
		var us int64
		err := r.Scan(&us, &e.Who, &e.Action, &e.Target, &e.Detail)
		e.At = time.UnixMicro(us).UTC()
		list = append(list, e)
		return err
	}, `SELECT at, who, action, target, detail FROM forbear_audit ORDER BY id DESC LIMIT ?`, limit)
	return list, err
}
