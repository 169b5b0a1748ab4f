package sqlstore

import (
	"database/sql"
	"strings"

	"github.com/forbear-go/forbear/webhook/store"
)

// acceptAll adds call by call and row by row. No statement crosses a network,
// so that there is nothing to gain from fewer of them.
func (sqlite) acceptAll(t *tx, calls []*acceptance) error {
	for _, a := range calls {
		added := false
		for i := range a.rows {
			if err := a.add(t, &a.rows[i]); err != nil {
				return err
			}
			added = added || a.rows[i].fresh
		}
		if err := a.undo(added); err != nil {
			return err
		}
	}
	return nil
}

// add adds a message with its deliveries. The message goes first, for the
// deliveries need its number, and is taken back when it is new nowhere.
func (a *acceptance) add(t *tx, m *encoded) error {
	seq, err := t.addMessage(m)
	if err != nil {
		return err
	}
	for _, e := range m.Endpoints {
		fresh, err := t.addDelivery(seq, e, m, a.orders(m, e))
		if err == nil && !fresh {
			err = a.compare(t, m, e)
		}
		if err != nil {
			return err
		}
		m.fresh = m.fresh || fresh
	}
	// No delivery names it: it would stay for good.
	if !m.fresh {
		_, err = t.exec(`DELETE FROM forbear_messages WHERE seq = ?`, seq)
	}
	return err
}

// claim reads lane by lane and then leases what it read: no one can change the
// rows in between.
func (sqlite) claim(t *tx, c claim) (done store.StepResult, err error) {
	scan := func(r *sql.Rows) (store.Delivery, error) { return t.db.scanClaim(r) }
	for _, lane := range c.lanes {
		found, err := collect(t, scan, `SELECT `+claimed+` FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message
			WHERE d.endpoint = ? AND d.`+stateWaiting+` AND d.`+c.which+` LIMIT ?`, lane.Endpoint, c.bound, lane.Max)
		if err != nil {
			return done, err
		}
		if len(found) == 0 {
			continue
		}
		ids := make([]int64, len(found))
		for i := range found {
			d := &found[i]
			ids[i] = d.ID
			// What the UPDATE below will write.
			d.Fence++
			d.Claims++
		}
		if _, err := t.exec(`UPDATE forbear_deliveries SET `+stateLeased+`, fence = fence + 1, claims = claims + 1, owner = ?, lease = {t}, written = {t} WHERE id IN ({ids})`,
			c.owner, after(c.lease), after(0), asJSON{ids}); err != nil {
			return done, err
		}
		done.Claimed = append(done.Claimed, found...)
	}
	done.Next, err = t.heads(short(c.lanes, done.Claimed))
	return done, err
}

// plain is none: a statement is as quick within the transaction of the others.
func (sqlite) plain([]*writeBack) []*writeBack { return nil }

// writeRows writes all rows in one statement, and in another the attempts of those that
// were written: no statement of SQLite's does both. A finished delivery keeps its due time
// and has an end, and one that goes on has a new due time and no end.
func (sqlite) writeRows(t *tx, rows []*writeBack, _ bool) error {
	index := make(map[leaseID]*writeBack, len(rows))
	for _, r := range rows {
		index[leaseID{r.ID, r.Fence}] = r
	}
	err := t.each(written(index), `UPDATE forbear_deliveries SET state = CAST(x.o ->> 'state' AS INTEGER), lease = NULL,
		due = CASE WHEN x.o ->> 'finished' THEN due ELSE {t} + (x.o ->> 'after') END, written = {t},
		progress = COALESCE(x.o ->> 'progress', progress), finished = CASE WHEN x.o ->> 'finished' THEN {t} END
		FROM (SELECT value AS o, value ->> 'id' AS id, value ->> 'fence' AS fence FROM json_each(?)) x
		WHERE forbear_deliveries.id = x.id AND forbear_deliveries.fence = x.fence AND `+stateLeased+` RETURNING forbear_deliveries.id, forbear_deliveries.fence, COALESCE(letter, '')`,
		after(0), after(0), after(0), asJSON{rows})
	if err != nil {
		return err
	}
	var attempts []attemptRow
	for _, r := range rows {
		if !r.ok || r.Attempt == nil {
			continue
		}
		a, err := t.db.newAttemptRow(r.ID, r.Attempt)
		if err != nil {
			return err
		}
		attempts = append(attempts, a)
	}
	if len(attempts) > 0 {
		_, err = t.exec(addAttempts, asJSON{attempts})
	}
	return err
}

// addAttempts adds attempts, whose JSON is named as the columns are. Without the condition
// SQLite would read the conflict as one of a join.
var addAttempts = `INSERT INTO forbear_attempts (` + attemptColumns + `) SELECT value ->> '` + strings.ReplaceAll(attemptColumns, ", ", `', value ->> '`) + `' FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`
