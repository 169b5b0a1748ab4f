package sqlstore

import (
	"database/sql"
	"encoding/json"

	"github.com/forbear-go/forbear/webhook"
)

// claimPostgres takes all lanes in one statement. SKIP LOCKED leaves what other
// processes are about to take; the materialised CTE keeps the planner from
// running the locking query more often than once.
func (s *Store) claimPostgres(t *tx, c claim) (list []webhook.Delivery, err error) {
	spec, err := json.Marshal(c.lanes)
	if err != nil {
		return nil, err
	}
	rows, err := t.query(`WITH lanes AS (SELECT "Endpoint" AS endpoint, "Max" AS n FROM json_to_recordset(?::json) AS x("Endpoint" text, "Max" int)),
		picked AS MATERIALIZED (SELECT d.id FROM lanes CROSS JOIN LATERAL
			(SELECT id FROM forbear_deliveries WHERE endpoint = lanes.endpoint AND state = 0 AND `+c.which+` LIMIT lanes.n FOR UPDATE SKIP LOCKED) d),
		d AS (UPDATE forbear_deliveries f SET state = 1, fence = fence + 1, claims = claims + 1, owner = ?, lease = {t} FROM picked WHERE f.id = picked.id RETURNING f.*)
		SELECT `+claimed+` FROM d JOIN forbear_messages m ON m.seq = d.message ORDER BY d.due`,
		string(spec), c.bound, c.owner, after(c.lease))
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r *sql.Rows) error {
		d, err := s.scanClaim(r)
		list = append(list, d)
		return err
	})
	return list, err
}
