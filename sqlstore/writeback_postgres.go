package sqlstore

import (
	"strconv"

	"github.com/forbear-go/forbear/webhook/store"
)

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
