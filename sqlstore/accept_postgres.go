package sqlstore

import (
	"cmp"
	"database/sql"
	"math/bits"
	"slices"
	"strings"
)

// Accepting is the hot path of a fleet, so that it is counted in round trips: for
// a group without ordered keys one statement adds 64 deliveries with their
// messages, and duplicates alone cost a look each.

// maxRows is how many deliveries one statement adds. It is a power of two: see
// [acceptTexts].
const maxRows = 64

// identity is what a message is known by.
type identity struct{ id, endpoint string }

// entry is one delivery that is asked for.
type entry struct {
	call     *acceptance
	m        *encoded
	endpoint string
	ordered  bool // it keeps its key's order
	state    rowState
	// number is its id, which is its place in the order of its key, and seq the
	// message's, when the sequences gave them beforehand; 0 otherwise.
	number, seq int64
}

func (e *entry) identity() identity { return identity{e.m.ID, e.endpoint} }

func (e *entry) key() ordering { return ordering{e.endpoint, e.m.Key} }

// acceptAll adds the messages of several calls.
//
// They are added in the order of their identities, whatever order they came
// in: two writers with the same ones cannot wait for each other. Of those with one
// identity the first is added, and the others find it known. The places of ordered ones
// are taken before, in the order in which they came.
func (postgres) acceptAll(t *tx, calls []*acceptance) error {
	if len(calls) == 0 {
		return nil
	}
	var list []*entry
	for _, a := range calls {
		for i := range a.rows {
			m := &a.rows[i]
			for _, endpoint := range m.Endpoints {
				list = append(list, &entry{call: a, m: m, endpoint: endpoint, ordered: a.orders(m, endpoint), state: waiting})
			}
		}
	}
	if err := t.takePlaces(list); err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.m.ID, b.m.ID), cmp.Compare(a.endpoint, b.endpoint))
	})
	if err := t.numberShared(list); err != nil {
		return err
	}
	fresh := make(map[identity]bool, len(list))
	for chunk := range slices.Chunk(list, maxRows) {
		if err := t.acceptRows(chunk, fresh); err != nil {
			return err
		}
	}
	return t.conclude(calls, list, fresh)
}

// takePlaces gives ordered deliveries their ids, in the order in which they
// came, and holds those behind one of their key that is not finished.
func (t *tx) takePlaces(list []*entry) error {
	type place struct {
		ordering

		N int `json:"n"`
	}
	var ordered []*entry
	var places []place
	for _, e := range list {
		if e.ordered {
			places = append(places, place{e.key(), len(ordered)})
			ordered = append(ordered, e)
		}
	}
	if len(ordered) == 0 {
		return nil
	}
	// The query sees what is stored, and not those of this list that come before.
	before := map[ordering]bool{} // keys with one in this very list
	return t.each(func(r *sql.Rows) error {
		var n int
		var number int64
		var busy bool
		if err := r.Scan(&n, &number, &busy); err != nil {
			return err
		}
		e := ordered[n]
		if e.number = number; busy || before[e.key()] {
			e.state = held
		}
		before[e.key()] = true
		return nil
	}, `SELECT x.n, nextval(`+deliverySequence+`), EXISTS (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = x.e AND d.okey = x.k AND d.`+stateUnfinished+`)
		FROM (SELECT * FROM json_to_recordset(?::json) AS x(n int, e text, k text) ORDER BY n) x`, asJSON{places})
}

// numberShared numbers the messages that have several deliveries: these must
// name the same one, and may come in different statements.
func (t *tx) numberShared(list []*entry) error {
	shared := map[*encoded]int64{}
	for _, e := range list {
		if len(e.m.Endpoints) > 1 {
			shared[e.m] = 0
		}
	}
	if len(shared) == 0 {
		return nil
	}
	numbers, err := collect(t, one[int64], `SELECT nextval(`+messageSequence+`) FROM generate_series(1, ?::int)`, len(shared))
	if err != nil {
		return err
	}
	for _, e := range list {
		seq, several := shared[e.m]
		if several && seq == 0 && len(numbers) > 0 {
			seq, numbers = numbers[0], numbers[1:]
			shared[e.m] = seq
		}
		e.seq = seq
	}
	return nil
}

// The sequences, looked up once a statement.
const (
	messageSequence  = `(SELECT pg_get_serial_sequence('forbear_messages', 'seq')::regclass)`
	deliverySequence = `(SELECT pg_get_serial_sequence('forbear_deliveries', 'id')::regclass)`
)

// acceptTexts are the statements for 1, 2, 4, ... deliveries: few enough to stay
// prepared. What is left of the last ones has an empty id. A message comes with
// the first of its deliveries.
var acceptTexts = func() (texts [7]string) {
	for i := range texts {
		row := "(?::text, ?::text, ?::bytea, ?::bigint, ?::text, ?::text, ?::smallint, ?::bigint, ?::bigint, ?::bigint)"
		texts[i] = `WITH x AS MATERIALIZED (SELECT id, meta, body, created, endpoint, okey, state, wait, number, COALESCE(given, nextval(` + messageSequence + `)) AS seq
				FROM (VALUES ` + strings.Repeat(row+", ", 1<<i-1) + row + `) v (id, meta, body, created, endpoint, okey, state, wait, number, given) WHERE id <> ''),
			d AS (INSERT INTO forbear_deliveries (id, message, message_id, endpoint, okey, state, due, start, written)
				SELECT COALESCE(number, nextval(` + deliverySequence + `)), seq, id, endpoint, okey, state, {now} + wait, {now} + wait, {now} FROM x
				ON CONFLICT (message_id, endpoint) DO NOTHING RETURNING message, message_id, endpoint),
			m AS (INSERT INTO forbear_messages (seq, meta, body, created)
				SELECT seq, meta, body, created FROM x WHERE body IS NOT NULL AND seq IN (SELECT message FROM d) ON CONFLICT (seq) DO NOTHING)
			SELECT message_id, endpoint FROM d`
	}
	return texts
}()

// acceptRows adds up to maxRows deliveries with their messages, and notes in
// fresh which were not known.
func (t *tx) acceptRows(list []*entry, fresh map[identity]bool) error {
	size := bits.Len(uint(len(list) - 1))
	args := make([]any, 0, 10<<size+3)
	for i, e := range list {
		var body, okey, number, seq any
		// The body goes over the wire once for all deliveries of a message.
		if i == 0 || e.m != list[i-1].m {
			body = e.m.body
		}
		if e.ordered {
			okey, number = e.m.Key, e.number
		}
		if e.seq != 0 {
			seq = e.seq
		}
		args = append(args, e.m.ID, e.m.meta, body, e.m.made, e.endpoint, okey, e.state, e.m.wait.Microseconds(), number, seq)
	}
	// Fill up to the power of two that the statement is made for.
	for range 1<<size - len(list) {
		args = append(args, "", nil, nil, nil, nil, nil, nil, nil, nil, nil)
	}
	return t.each(func(r *sql.Rows) error {
		var i identity
		err := r.Scan(&i.id, &i.endpoint)
		fresh[i] = true
		return err
	}, acceptTexts[size], append(args, after(0), after(0), after(0))...)
}

// conclude notes what became of each call: what is not fresh is a duplicate, or
// a conflict.
func (t *tx) conclude(calls []*acceptance, list []*entry, fresh map[identity]bool) error {
	added := map[*acceptance]bool{}
	var keys []ordering // another one may be held behind what was not added
	for _, e := range list {
		if fresh[e.identity()] {
			delete(fresh, e.identity()) // another one in the list is a duplicate of this
			e.m.fresh, added[e.call] = true, true
			continue
		}
		if err := e.call.compare(t, e.m, e.endpoint); err != nil {
			return err
		}
		if e.ordered {
			keys = append(keys, e.key())
		}
	}
	for _, a := range calls {
		if err := a.undo(added[a]); err != nil {
			return err
		}
	}
	return t.promote(keys)
}
