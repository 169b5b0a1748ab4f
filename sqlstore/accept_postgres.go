package sqlstore

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
)

const (
	maxRows       = 64   // messages that one statement adds on PostgreSQL
	maxDeliveries = 4000 // deliveries that one statement adds, but for those of its last message
)

// acceptTogether adds what several calls ask for in as few round trips as
// possible. A call that names what an earlier one names as well comes behind
// it, and finds it known.
func (t *tx) acceptTogether(calls []*acceptance) error {
	for len(calls) > 0 {
		taken := map[identity]bool{}
		var now, later []*acceptance
		for _, a := range calls {
			if a.take(taken) {
				now = append(now, a)
			} else {
				later = append(later, a)
			}
		}
		if err := t.acceptApart(now); err != nil {
			return err
		}
		calls = later
	}
	return nil
}

// take reports whether nothing that the call names was taken, and takes it.
func (a *acceptance) take(taken map[identity]bool) bool {
	for i := range a.rows {
		for _, e := range a.rows[i].Endpoints {
			if taken[identity{a.rows[i].ID, e}] {
				return false
			}
		}
	}
	for i := range a.rows {
		for _, e := range a.rows[i].Endpoints {
			taken[identity{a.rows[i].ID, e}] = true
		}
	}
	return true
}

// entry is one delivery that is asked for, as the statement wants it.
type entry struct {
	N        int     `json:"n"` // of its message in the statement
	MID      string  `json:"mid"`
	Endpoint string  `json:"endpoint"`
	OKey     *string `json:"okey,omitempty"` // when it keeps its key's order
	// Number is the delivery's id, which is its place in the order of its key;
	// 0 draws one.
	Number int64 `json:"number,omitempty"`
	State  int   `json:"state"`
	Wait   int64 `json:"wait"` // microseconds

	call *acceptance
	m    *encoded
}

// acceptApart adds the messages of calls that have no identity in common.
//
// They are added in the order of their identities, whatever order they came
// in: two writers with the same ones cannot wait for each other. The places of
// ordered ones are drawn before, in the order in which they came.
func (t *tx) acceptApart(calls []*acceptance) error {
	var list []*entry
	for _, a := range calls {
		for i := range a.rows {
			m := &a.rows[i]
			for _, endpoint := range m.Endpoints {
				e := &entry{MID: m.ID, Endpoint: endpoint, Wait: m.wait.Microseconds(), call: a, m: m}
				if a.orders(m, endpoint) {
					e.OKey = &m.Key
				}
				list = append(list, e)
			}
		}
	}
	if err := t.place(list); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.MID, b.MID), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	fresh := make(map[identity]bool, len(list))
	for rest := list; len(rest) > 0; {
		n := fill(rest)
		if err := t.acceptRows(rest[:n], fresh); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return t.judge(calls, list, fresh)
}

// place draws the places of ordered deliveries, and holds those behind one of
// their key that is not finished.
func (t *tx) place(list []*entry) error {
	var ordered []*entry
	for _, e := range list {
		if e.OKey != nil {
			e.N = len(ordered)
			ordered = append(ordered, e)
		}
	}
	if len(ordered) == 0 {
		return nil
	}
	spec, err := json.Marshal(ordered)
	if err != nil {
		return err
	}
	rows, err := t.query(`SELECT x.n, nextval(pg_get_serial_sequence('forbear_deliveries', 'id')),
			EXISTS (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = x.endpoint AND d.okey = x.okey AND d.state IN (0, 1, 4))
		FROM (SELECT * FROM json_to_recordset(?::json) AS x(n int, endpoint text, okey text) ORDER BY n) x`, string(spec))
	if err != nil {
		return err
	}
	before := map[ordering]bool{}
	return each(rows, func(r *sql.Rows) error {
		var n int
		var number int64
		var busy bool
		if err := r.Scan(&n, &number, &busy); err != nil {
			return err
		}
		e := ordered[n]
		k := ordering{e.Endpoint, *e.OKey}
		if e.Number = number; busy || before[k] {
			e.State = held
		}
		before[k] = true
		return nil
	})
}

// fill returns how many of the entries, which are sorted by message, go into
// one statement, and numbers their messages. A message is never torn apart.
func fill(list []*entry) int {
	messages := 0
	for i, e := range list {
		if i == 0 || e.m != list[i-1].m {
			if messages == maxRows || i >= maxDeliveries {
				return i
			}
			messages++
		}
		e.N = messages - 1
	}
	return len(list)
}

// acceptTexts are the statements for 1, 2, 4, ... messages: few enough to stay
// prepared. What is left of the last messages has a negative number.
var acceptTexts = func() (texts [7]string) {
	for i := range texts {
		row := "(?::int, ?::text, ?::bytea, ?::bigint)"
		texts[i] = `WITH s AS MATERIALIZED (SELECT v.*, nextval(pg_get_serial_sequence('forbear_messages', 'seq')) AS seq
				FROM (VALUES ` + strings.Repeat(row+", ", 1<<i-1) + row + `) v (n, meta, body, created) WHERE n >= 0),
			d AS (INSERT INTO forbear_deliveries (id, message, message_id, endpoint, okey, state, due, start)
				SELECT COALESCE(x.number, nextval(pg_get_serial_sequence('forbear_deliveries', 'id'))), s.seq, x.mid, x.endpoint, x.okey, x.state, {now} + x.wait, {now} + x.wait
				FROM json_to_recordset(?::json) AS x(n int, mid text, endpoint text, okey text, number bigint, state smallint, wait bigint) JOIN s ON s.n = x.n
				ORDER BY x.mid COLLATE "C", x.endpoint COLLATE "C" ON CONFLICT (message_id, endpoint) DO NOTHING RETURNING message, message_id, endpoint),
			m AS (INSERT INTO forbear_messages (seq, meta, body, created) SELECT seq, meta, body, created FROM s WHERE seq IN (SELECT message FROM d))
			SELECT message_id, endpoint FROM d`
	}
	return texts
}()

func (t *tx) acceptRows(list []*entry, fresh map[identity]bool) error {
	messages := list[len(list)-1].N + 1
	size := bits.Len(uint(messages - 1))
	args := make([]any, 0, 4<<size+3)
	for i, e := range list {
		if i == 0 || e.m != list[i-1].m {
			args = append(args, e.N, e.m.meta, e.m.body, e.m.made)
		}
	}
	for range 1<<size - messages {
		args = append(args, -1, "", []byte{}, 0)
	}
	spec, err := json.Marshal(list)
	if err != nil {
		return err
	}
	found, err := t.query(acceptTexts[size], append(args, after(0), after(0), string(spec))...)
	if err != nil {
		return err
	}
	return each(found, func(r *sql.Rows) error {
		var i identity
		err := r.Scan(&i.id, &i.endpoint)
		fresh[i] = true
		return err
	})
}

// judge tells the calls what became of them: what is not fresh is a duplicate,
// or a conflict.
func (t *tx) judge(calls []*acceptance, list []*entry, fresh map[identity]bool) error {
	added := map[*acceptance]bool{}
	var keys []ordering // another one may be held behind what was not added
	for _, e := range list {
		if fresh[identity{e.MID, e.Endpoint}] {
			e.m.fresh, added[e.call] = true, true
			continue
		}
		known, err := t.known(e.MID, e.Endpoint, false)
		if err != nil {
			return err
		}
		if e.call.refused == nil && !e.m.SameContent(&known.Message) {
			e.call.refused = conflict(e.MID, e.Endpoint)
		}
		if e.OKey != nil {
			keys = append(keys, ordering{e.Endpoint, *e.OKey})
		}
	}
	for _, a := range calls {
		if err := a.undo(added[a]); err != nil {
			return err
		}
	}
	return t.promote(keys)
}
