package sqlstore

import (
	"database/sql"

	"github.com/forbear-go/forbear/webhook/store"
)

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
