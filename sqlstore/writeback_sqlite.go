package sqlstore

import "strings"

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
