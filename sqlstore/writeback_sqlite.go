package sqlstore

import (
	"strconv"

	"github.com/forbear-go/forbear/webhook"
)

// settleDelivered writes back the successes, nearly all there is on a good day,
// in one statement.
func (t *tx) settleDelivered(rows []settled) error {
	index := make(map[leaseID]*settled, len(rows))
	spec := []byte("[")
	for i := range rows {
		r := &rows[i]
		if r.Kind != webhook.Delivered {
			continue
		}
		if len(index) > 0 {
			spec = append(spec, ',')
		}
		index[leaseID{r.ID, r.Fence}] = r
		spec = strconv.AppendInt(append(spec, '['), r.ID, 10)
		spec = append(strconv.AppendInt(append(spec, ','), r.Fence, 10), ']')
	}
	if len(index) == 0 {
		return nil
	}
	found, err := t.query(`UPDATE forbear_deliveries SET state = 2, finished = {t}, lease = NULL
		FROM (SELECT value ->> 0 AS id, value ->> 1 AS fence FROM json_each(?)) x
		WHERE forbear_deliveries.id = x.id AND forbear_deliveries.fence = x.fence AND state = 1 RETURNING forbear_deliveries.id, forbear_deliveries.fence, COALESCE(letter, '')`, after(0), string(append(spec, ']')))
	if err != nil {
		return err
	}
	return note(found, index)
}
