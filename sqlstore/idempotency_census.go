package sqlstore

import (
	"context"
	"database/sql"

	"github.com/forbear-go/forbear/idempotency"
)

// sqlCensus reads the index of records that are started or held, and of the table
// those rows alone that wait.
const sqlCensus = `SELECT event, overdue, COUNT(*), MIN(since), {t} FROM (
	SELECT CASE WHEN substr(scope, 1, 6) = '` + idempotency.EventScope + `' THEN 1 ELSE 0 END AS event,
		CASE WHEN ` + recordHeld + ` OR rerun = 0 THEN 0 ELSE 1 END AS overdue,
		CASE WHEN ` + recordHeld + ` OR rerun = 0 THEN created ELSE lease END AS since
	FROM forbear_idempotency
	WHERE ` + recordTaken + ` AND (` + recordHeld + ` AND note <> '` + idempotency.DeadLetterNote + `' OR ` + recordStarted + ` AND lease <= {t} AND (rerun = 0 OR expires > {t}))
		AND substr(scope, 1, 15) <> '` + idempotency.EventProgressScope + `'
	LIMIT ?) AS waiting GROUP BY event, overdue`

// Census implements idempotency.Counter.
func (i *Idempotency) Census(ctx context.Context) (c idempotency.Census, err error) {
	err = i.db.each(ctx, func(r *sql.Rows) error {
		var event, overdue, n int
		var since, now int64
		if err := r.Scan(&event, &overdue, &n, &since, &now); err != nil {
			return err
		}
		w, age := &c.Requests, max(at(now).Sub(at(since)), 0)
		if event == 1 {
			w = &c.Events
		}
		if overdue == 1 {
			w.Overdue, w.OverdueFor = n, age
		} else {
			w.Held, w.HeldFor = n, age
		}
		return nil
	}, sqlCensus, after(0), after(0), after(0), idempotency.MaxCensus)
	return c, err
}
