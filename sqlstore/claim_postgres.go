package sqlstore

import (
	"database/sql"
	"slices"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// claim takes all lanes in one statement, which also says when the next delivery of
// each is due: those rows have no id. SKIP LOCKED leaves what other processes are
// about to take; the materialised CTE keeps the planner from running the locking
// query more often than once. No table is joined in a way that a plan may turn
// around: one that was made while the tables were small would read all of them.
func (postgres) claim(t *tx, c claim) (done store.StepResult, err error) {
	// One argument for any number of lanes keeps the statement prepared.
	err = t.each(func(r *sql.Rows) error {
		var next sql.NullInt64
		d, err := t.db.scanClaim(r, &next)
		switch {
		case err != nil:
			return err
		case d.ID != 0:
			done.Claimed = append(done.Claimed, d)
		case next.Valid:
			done.Next = append(done.Next, store.NextDue{Endpoint: d.Endpoint, In: time.Duration(next.Int64) * time.Microsecond})
		}
		return nil
	}, `WITH lanes AS (SELECT "Endpoint" AS endpoint, "Max" AS n FROM json_to_recordset(?::json) AS x("Endpoint" text, "Max" int)),
		picked AS MATERIALIZED (SELECT d.id FROM lanes CROSS JOIN LATERAL
			(SELECT id FROM forbear_deliveries WHERE endpoint = lanes.endpoint AND `+stateWaiting+` AND `+c.which+` LIMIT lanes.n {skip locked}) d),
		d AS (UPDATE forbear_deliveries SET `+stateLeased+`, fence = fence + 1, claims = claims + 1, owner = ?, lease = {t}, written = {t} WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING *)
		SELECT `+claimed+`, NULL::bigint FROM d CROSS JOIN LATERAL (SELECT * FROM forbear_messages WHERE seq = d.message OFFSET 0) m
		UNION ALL SELECT 0, 0, 0, lanes.endpoint, '', 0, 0, '', '', false, '', 0, '', '', (SELECT w.due FROM forbear_deliveries w
			WHERE w.endpoint = lanes.endpoint AND w.`+stateWaiting+` AND w.id NOT IN (SELECT id FROM picked) ORDER BY w.due LIMIT 1) - {t} FROM lanes
		ORDER BY due`,
		asJSON{c.lanes}, c.bound, c.owner, after(c.lease), after(0), after(0))
	wants := make(map[string]bool, len(c.lanes))
	for _, e := range short(c.lanes, done.Claimed) {
		wants[e] = true
	}
	done.Next = slices.DeleteFunc(done.Next, func(n store.NextDue) bool { return !wants[n.Endpoint] })
	return done, err
}
