package sqlstore

import "github.com/forbear-go/forbear/webhook"

// claim takes all lanes in one statement. SKIP LOCKED leaves what other
// processes are about to take; the materialised CTE keeps the planner from
// running the locking query more often than once.
func (postgres) claim(t *tx, c claim) ([]webhook.Delivery, error) {
	// One argument for any number of lanes keeps the statement prepared.
	return collect(t, t.db.scanClaim, `WITH lanes AS (SELECT "Endpoint" AS endpoint, "Max" AS n FROM json_to_recordset(?::json) AS x("Endpoint" text, "Max" int)),
		picked AS MATERIALIZED (SELECT d.id FROM lanes CROSS JOIN LATERAL
			(SELECT id FROM forbear_deliveries WHERE endpoint = lanes.endpoint AND `+stateWaiting+` AND `+c.which+` LIMIT lanes.n {skip locked}) d),
		d AS (UPDATE forbear_deliveries f SET `+stateLeased+`, fence = fence + 1, claims = claims + 1, owner = ?, lease = {t} FROM picked WHERE f.id = picked.id RETURNING f.*)
		SELECT `+claimed+` FROM d JOIN forbear_messages m ON m.seq = d.message ORDER BY d.due`,
		asJSON{c.lanes}, c.bound, c.owner, after(c.lease))
}
