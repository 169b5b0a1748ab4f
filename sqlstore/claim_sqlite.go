package sqlstore

import (
	"database/sql"
	"strconv"

	"github.com/forbear-go/forbear/webhook"
)

func (s *Store) claimSQLite(t *tx, c claim) (list []webhook.Delivery, err error) {
	for _, lane := range c.lanes {
		from := len(list)
		rows, err := t.query(`SELECT `+claimed+` FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message
			WHERE d.endpoint = ? AND d.state = 0 AND d.`+c.which+` LIMIT ?`, lane.Endpoint, c.bound, lane.Max)
		if err != nil {
			return nil, err
		}
		err = each(rows, func(r *sql.Rows) error {
			d, err := s.scanClaim(r)
			list = append(list, d)
			return err
		})
		if err != nil {
			return nil, err
		}
		if from == len(list) {
			continue
		}
		ids := []byte("[")
		for i := from; i < len(list); i++ {
			d := &list[i]
			d.Fence++
			d.Claims++
			if i > from {
				ids = append(ids, ',')
			}
			ids = strconv.AppendInt(ids, d.ID, 10)
		}
		if _, err := t.exec(`UPDATE forbear_deliveries SET state = 1, fence = fence + 1, claims = claims + 1, owner = ?, lease = {t} WHERE id IN (SELECT value FROM json_each(?))`,
			c.owner, after(c.lease), string(append(ids, ']'))); err != nil {
			return nil, err
		}
	}
	return list, nil
}
