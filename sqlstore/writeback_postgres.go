package sqlstore

// writeStates writes all rows in one statement.
//
// A row may have to be waited for: another process's claim that came too late
// locks it, too. Claims wait for nothing, and come last in their transactions,
// so that this ends. The sum keeps the planner from the partial index on
// leases: it may take that for small, and then compares each row with each
// lease.
func (postgres) writeStates(t *tx, rows []writeBack) error {
	const isLeased = `d.state + 0 = ` + string(leased)
	index := make(map[leaseID]*writeBack, len(rows))
	for i := range rows {
		index[leaseID{rows[i].ID, rows[i].Fence}] = &rows[i]
	}
	return t.each(written(index), `WITH x AS MATERIALIZED (SELECT x.* FROM json_to_recordset(?::json) AS x(id bigint, fence bigint, state smallint, "after" bigint, progress text, finished boolean)
			JOIN forbear_deliveries d ON d.id = x.id AND d.fence = x.fence AND `+isLeased+` ORDER BY x.id FOR UPDATE OF d)
		UPDATE forbear_deliveries d SET state = x.state, due = CASE WHEN x.finished THEN d.due ELSE {t} + x."after" END,
			progress = COALESCE(x.progress, d.progress), finished = CASE WHEN x.finished THEN {t} END, lease = NULL
		FROM x WHERE d.id = x.id AND d.fence = x.fence AND `+isLeased+` RETURNING d.id, d.fence, COALESCE(d.letter, '')`, asJSON{rows}, after(0), after(0))
}

// addAttempts adds all attempts in one statement.
func (postgres) addAttempts(t *tx, list []attemptRow) error {
	_, err := t.exec(`INSERT INTO forbear_attempts (`+attemptColumns+`) SELECT `+attemptColumns+` FROM json_to_recordset(?::json)
		AS x(delivery bigint, claim int, n int, due bigint, at bigint, took bigint, wait bigint, error_type text, status int, worker text, response text, cause text) ON CONFLICT DO NOTHING`, asJSON{list})
	return err
}
