package sqlstore

import (
	"cmp"
	"database/sql"
	"math/bits"
	"slices"
	"strings"
)

// maxRows is how many messages one statement adds on PostgreSQL.
const maxRows = 64

// acceptTogether adds what it can in one round trip: messages for one endpoint
// each that need not keep an order. The others follow one by one.
func (t *tx) acceptTogether(calls []*acceptance) error {
	type late struct {
		m       *encoded
		ordered map[string]bool
	}
	var rows []*encoded
	var rest []late
	seen := map[string]bool{}
	for _, a := range calls {
		for i := range a.rows {
			m := &a.rows[i]
			if m.fresh = false; len(m.Endpoints) == 1 && !seen[m.ID] && (m.Key == "" || !a.ordered[m.Endpoints[0]]) {
				seen[m.ID] = true
				rows = append(rows, m)
			} else {
				rest = append(rest, late{m, a.ordered})
			}
		}
	}
	// In one order, so that two writers with the same ids do not wait for each
	// other.
	slices.SortFunc(rows, func(a, b *encoded) int { return cmp.Compare(a.ID, b.ID) })
	for chunk := range slices.Chunk(rows, maxRows) {
		if err := t.acceptRows(chunk); err != nil {
			return err
		}
	}
	for _, l := range rest {
		if err := t.accept(l.m, l.ordered); err != nil {
			return err
		}
	}
	return nil
}

// acceptTexts are the statements for 1, 2, 4, ... rows: few enough to stay
// prepared. What is left of the last rows has an empty id.
var acceptTexts = func() (texts [7]string) {
	for i := range texts {
		row := "(?::text, ?::text, ?::bytea, ?::bigint, ?::text, {t})"
		texts[i] = `WITH x (id, meta, body, created, endpoint, at) AS MATERIALIZED (VALUES ` + strings.Repeat(row+", ", 1<<i-1) + row + `),
			m AS (INSERT INTO forbear_messages (id, meta, body, created) SELECT id, meta, body, created FROM x WHERE id <> '' ON CONFLICT (id) DO NOTHING RETURNING seq, id),
			d AS (INSERT INTO forbear_deliveries (message, endpoint, state, due, start) SELECT m.seq, x.endpoint, 0, x.at, x.at FROM m JOIN x ON x.id = m.id)
			SELECT id FROM m`
	}
	return texts
}()

func (t *tx) acceptRows(rows []*encoded) error {
	size := bits.Len(uint(len(rows) - 1))
	args := make([]any, 0, 6<<size)
	for _, m := range rows {
		args = append(args, m.ID, m.meta, m.body, m.made, m.Endpoints[0], after(m.wait))
	}
	for range 1<<size - len(rows) {
		args = append(args, "", "", []byte{}, 0, "", after(0))
	}
	found, err := t.query(acceptTexts[size], args...)
	if err != nil {
		return err
	}
	fresh := make(map[string]bool, len(rows))
	err = each(found, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		fresh[id] = true
		return err
	})
	for _, m := range rows {
		m.fresh = fresh[m.ID]
	}
	return err
}
