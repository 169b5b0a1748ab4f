package sqlstore

import (
	"database/sql"
	"slices"
	"strconv"
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

// plain are those that entail nothing, as far as one can know here: nearly all.
func (postgres) plain(rows []*writeBack) (list []*writeBack) {
	for _, r := range rows {
		if r.Kind != store.Dead && !r.Unreadable && (r.OrderKey == "" || !r.Finished) {
			list = append(list, r)
		}
	}
	return list
}

// outcome is the JSON of a row with its attempt.
type outcome struct {
	*writeBack
	*attemptRow
}

// writeRows writes all rows and their attempts in one statement. No table is joined
// in it: a plan that was made while the table was small may read all of it later
// on, for each row. The rows are found by their ids, in the order of these, and
// each looks for its outcome by its own.
//
// A row may have to be waited for: another process's claim that came too late
// locks it, too. Claims wait for nothing, and come last in their transactions,
// so that this ends.
func (postgres) writeRows(t *tx, rows []*writeBack, all bool) error {
	ids := make([]int64, len(rows))
	outcomes := make(map[string]outcome, len(rows))
	index := make(map[leaseID]*writeBack, len(rows))
	for i, r := range rows {
		o := outcome{writeBack: r}
		if r.Attempt != nil {
			a, err := t.db.newAttemptRow(r.ID, r.Attempt)
			if err != nil {
				return err
			}
			o.attemptRow = &a
		}
		ids[i], outcomes[strconv.FormatInt(r.ID, 10)], index[leaseID{r.ID, r.Fence}] = r.ID, o, r
	}
	// The sum keeps the planner from the partial index on leases.
	return t.each(written(index), `WITH p AS MATERIALIZED (SELECT ?::jsonb AS o),
		d AS (UPDATE forbear_deliveries SET state = (`+outcomeOf+` ->> 'state')::smallint, lease = NULL,
			due = CASE WHEN (`+outcomeOf+` ->> 'finished')::boolean THEN due ELSE {t} + (`+outcomeOf+` ->> 'after')::bigint END, written = {t},
			progress = COALESCE(`+outcomeOf+` ->> 'progress', progress), finished = CASE WHEN (`+outcomeOf+` ->> 'finished')::boolean THEN {t} END
			WHERE id {in ids} AND fence = (`+outcomeOf+` ->> 'fence')::bigint AND state + 0 = `+string(leased)+` AND (letter IS NULL OR ?::boolean)
			RETURNING id, fence, letter),
		a AS (INSERT INTO forbear_attempts (`+attemptColumns+`) SELECT x.* FROM d CROSS JOIN LATERAL jsonb_to_record(`+outcomeOf+`)
			AS x(delivery bigint, claim int, n int, due bigint, at bigint, took bigint, wait bigint, error_type text, status int, worker text, response text, cause text)
			WHERE x.delivery IS NOT NULL ON CONFLICT DO NOTHING)
		SELECT id, fence, COALESCE(letter, '') FROM d`, asJSON{outcomes}, after(0), after(0), after(0), asJSON{ids}, all)
}

// outcomeOf is the outcome of the delivery with an id.
const outcomeOf = `((SELECT o FROM p) -> id::text)`
