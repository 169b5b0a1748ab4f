package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// Turn implements webhook.Store. What the outcomes let go, the next message of
// a key, can be claimed in the same turn.
func (s *Store) Turn(ctx context.Context, turn webhook.Turn) (webhook.Turned, error) {
	rows := make([]settled, len(turn.Outcomes))
	for i := range turn.Outcomes {
		var err error
		if rows[i], err = settle(&turn.Outcomes[i]); err != nil {
			return webhook.Turned{}, err
		}
	}
	letters, err := s.prepareLetters(turn.Outcomes)
	if err != nil {
		return webhook.Turned{}, err
	}
	c := claim{owner: turn.Owner, lease: turn.Lease, lanes: turn.Lanes, which: `due <= {now} ORDER BY due`}
	end := time.Now().Add(turn.Lease)
	// A lease ends with the machine that holds it, when the database is on the
	// same one: a claim does not wait for the disk.
	as := op{volatile: len(rows) == 0 && !s.d.postgres}
	for i := range rows {
		if r := &rows[i]; r.Finished && r.OrderKey != "" {
			as.keys.add(r.Endpoint, r.OrderKey)
		}
	}
	box := new(webhook.Turned)
	as.run = func(t *tx) (err error) {
		box.OK, err = s.finish(t, rows, letters)
		return err
	}
	as.last = func(t *tx) (err error) {
		if box.Claimed, err = s.claim(t, c); err == nil {
			box.Next, err = t.next(short(turn.Lanes, box.Claimed))
		}
		return err
	}
	written := as.keys != 0 && len(turn.Lanes) > 0
	if written {
		// In a transaction of its own, so that the keys are free before others
		// are claimed.
		back := op{keys: as.keys, run: as.run}
		if err := s.submit(ctx, &back); err != nil {
			return webhook.Turned{}, err
		}
		as = op{last: as.last}
	}
	done, err := submitted(ctx, s, &as, box)
	if err != nil && written {
		return webhook.Turned{OK: box.OK}, nil // the claim is made with the next turn
	}
	until(done.Claimed, end)
	return done, err
}

// finish writes outcomes back, with their history and what they entail.
func (s *Store) finish(t *tx, rows []settled, letters map[int64]letterRow) ([]bool, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	if err := t.settle(rows); err != nil {
		return nil, err
	}
	if err := t.recordAttempts(rows); err != nil {
		return nil, err
	}
	ok := make([]bool, len(rows))
	for i := range rows {
		ok[i] = rows[i].ok
	}
	return ok, s.followUp(t, rows, letters)
}

// short returns the endpoints that got less than they wanted.
func short(lanes []webhook.Lane, claimed []webhook.Delivery) (endpoints []string) {
	got := make(map[string]int, len(lanes))
	for i := range claimed {
		got[claimed[i].Endpoint]++
	}
	for _, l := range lanes {
		if got[l.Endpoint] < l.Max {
			endpoints = append(endpoints, l.Endpoint)
		}
	}
	return endpoints
}

// next tells when the first waiting delivery of each endpoint is due.
func (t *tx) next(endpoints []string) (heads []webhook.Head, err error) {
	if len(endpoints) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(endpoints)
	if err != nil {
		return nil, err
	}
	text := `SELECT e.value, (SELECT min(due) FROM forbear_deliveries d WHERE d.state = 0 AND d.endpoint = e.value) - {t} FROM json_each(?) e`
	args := []any{after(0), string(list)}
	if t.d.postgres {
		text = `SELECT e.value, (SELECT min(due) FROM forbear_deliveries d WHERE d.state = 0 AND d.endpoint = e.value) - {t} FROM json_array_elements_text(?::json) e`
	}
	rows, err := t.query(text, args...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r *sql.Rows) error {
		h, ok, err := scanHead(r)
		if ok {
			heads = append(heads, h)
		}
		return err
	})
	return heads, err
}

func scanHead(r *sql.Rows) (h webhook.Head, ok bool, err error) {
	var in sql.NullInt64
	err = r.Scan(&h.Endpoint, &in)
	h.In = time.Duration(in.Int64) * time.Microsecond
	return h, in.Valid, err
}
