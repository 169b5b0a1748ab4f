package sqlstore

import "github.com/forbear-go/forbear/webhook"

// claim reads lane by lane and then leases what it read: no one can change the
// rows in between.
func (sqlite) claim(t *tx, c claim) (list []webhook.Delivery, err error) {
	for _, lane := range c.lanes {
		found, err := collect(t, t.db.scanClaim, `SELECT `+claimed+` FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message
			WHERE d.endpoint = ? AND d.`+stateWaiting+` AND d.`+c.which+` LIMIT ?`, lane.Endpoint, c.bound, lane.Max)
		if err != nil {
			return nil, err
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
		if _, err := t.exec(`UPDATE forbear_deliveries SET `+stateLeased+`, fence = fence + 1, claims = claims + 1, owner = ?, lease = {t} WHERE id IN ({ids})`,
			c.owner, after(c.lease), asJSON{ids}); err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}
