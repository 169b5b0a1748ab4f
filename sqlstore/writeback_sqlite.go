package sqlstore

import (
	"strings"

	"github.com/forbear-go/forbear/webhook/store"
)

// plain is none: a statement is as quick within the transaction of the others.
func (sqlite) plain([]*writeBack) []*writeBack { return nil }

// writeRows writes the successes in one statement, nearly all there is on a good
// day, and the others one by one, and then the attempts.
func (sqlite) writeRows(t *tx, rows []*writeBack, _ bool) (err error) {
	if err := t.writeDelivered(rows); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Kind == store.Delivered {
			continue
		}
		// A finished delivery keeps its due time and has an end, and one that goes
		// on has a new due time and no end.
		var finished any
		if r.Finished {
			finished = after(0)
		}
		r.ok, err = t.row([]any{&r.letter}, `UPDATE forbear_deliveries SET state = ?, due = CASE WHEN ? IS NULL THEN {t} ELSE due END, written = {t}, progress = COALESCE(?, progress), finished = ?, lease = NULL
			WHERE id = ? AND fence = ? AND `+stateLeased+` RETURNING COALESCE(letter, '')`,
			r.State, finished, after(r.WriteBack.After), after(0), r.Progress, finished, r.ID, r.Fence)
		if err != nil {
			return err
		}
	}
	return t.recordAttempts(rows)
}

// writeDelivered writes back what was delivered.
func (t *tx) writeDelivered(rows []*writeBack) error {
	index := make(map[leaseID]*writeBack, len(rows))
	var leases [][2]int64
	for _, r := range rows {
		if r.Kind == store.Delivered {
			index[leaseID{r.ID, r.Fence}] = r
			leases = append(leases, [2]int64{r.ID, r.Fence})
		}
	}
	if len(leases) == 0 {
		return nil
	}
	return t.each(written(index), `UPDATE forbear_deliveries SET `+stateDelivered+`, finished = {t}, lease = NULL
		FROM (SELECT value ->> 0 AS id, value ->> 1 AS fence FROM json_each(?)) x
		WHERE forbear_deliveries.id = x.id AND forbear_deliveries.fence = x.fence AND `+stateLeased+` RETURNING forbear_deliveries.id, forbear_deliveries.fence, COALESCE(letter, '')`, after(0), asJSON{leases})
}

// attemptGroup is the number of attempts in one statement.
const attemptGroup = 8

// attemptsInsert adds n attempts.
func attemptsInsert(n int) string {
	row := "(" + placeholders(12) + ")"
	return `INSERT INTO forbear_attempts (` + attemptColumns + `) VALUES ` + strings.Repeat(row+", ", n-1) + row + ` ON CONFLICT DO NOTHING`
}

var attemptsInsertGroup, attemptsInsertOne = attemptsInsert(attemptGroup), attemptsInsert(1)

// addAttempts adds whole groups, and what is left one by one: two statements
// that stay prepared.
func (t *tx) addAttempts(list []attemptRow) error {
	for len(list) > 0 {
		n, text := 1, attemptsInsertOne
		if len(list) >= attemptGroup {
			n, text = attemptGroup, attemptsInsertGroup
		}
		args := make([]any, 0, n*12)
		for _, a := range list[:n] {
			args = append(args, a.Delivery, a.Claim, a.N, a.Due, a.At, a.Took, a.Wait, a.ErrorType, a.Status, a.Worker, a.Response, a.Cause)
		}
		if _, err := t.exec(text, args...); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
