package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/forbear-go/forbear/deadletter"
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

// settled is an outcome as its row wants it.
type settled struct {
	*webhook.Outcome `json:"-"`

	ID       int64   `json:"id"`
	Fence    int64   `json:"fence"`
	State    int     `json:"state"`
	After    int64   `json:"after"` // microseconds
	Progress *string `json:"progress"`
	Finished bool    `json:"finished"`

	// What the write returned: whether the row was still this lease's, and the
	// letter that it redrives.
	ok     bool
	letter string
}

func settle(o *webhook.Outcome) (settled, error) {
	s := settled{Outcome: o, ID: o.ID, Fence: o.Fence, After: o.After.Microseconds()}
	switch o.Kind {
	case webhook.Delivered:
		s.State, s.Finished = delivered, true
	case webhook.Dead:
		s.State, s.Finished = dead, true
	}
	if o.Kind != webhook.Delivered && !(o.Kind == webhook.Released && o.Progress == webhook.Progress{}) {
		text, err := json.Marshal(o.Progress)
		if err != nil {
			return s, err
		}
		p := string(text)
		s.Progress = &p
	}
	return s, nil
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

// settle writes the states back, fenced.
func (t *tx) settle(rows []settled) (err error) {
	for i := range rows {
		rows[i].ok, rows[i].letter = false, ""
	}
	if t.d.postgres {
		return t.settlePostgres(rows)
	}
	if err := t.settleDelivered(rows); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if r.Kind == webhook.Delivered {
			continue
		}
		var finished any
		if r.Finished {
			finished = after(0)
		}
		r.ok, err = t.row([]any{&r.letter}, `UPDATE forbear_deliveries SET state = ?, due = CASE WHEN ? IS NULL THEN {t} ELSE due END, progress = COALESCE(?, progress), finished = ?, lease = NULL
			WHERE id = ? AND fence = ? AND state = 1 RETURNING COALESCE(letter, '')`,
			r.State, finished, after(r.Outcome.After), r.Progress, finished, r.ID, r.Fence)
		if err != nil {
			return err
		}
	}
	return nil
}

// leaseID names one claim of a delivery.
type leaseID struct{ id, fence int64 }

// note notes which rows were written.
func note(found *sql.Rows, index map[leaseID]*settled) error {
	return each(found, func(r *sql.Rows) error {
		var id leaseID
		var letter string
		err := r.Scan(&id.id, &id.fence, &letter)
		if row := index[id]; row != nil {
			row.ok, row.letter = true, letter
		}
		return err
	})
}

// followUp does what a settled delivery entails, in the same transaction: its
// letter and alert, the redrive that it belongs to, the next of its key, whose
// lock the transaction holds.
func (s *Store) followUp(t *tx, rows []settled, letters map[int64]letterRow) error {
	var keys []ordering
	for i := range rows {
		r := &rows[i]
		if !r.ok {
			continue
		}
		var err error
		switch {
		case r.Kind == webhook.Dead:
			err = s.bury(t, r.ID, r.letter, letters[r.ID])
		case r.letter == "":
		case r.Kind == webhook.Delivered:
			err = t.endRedrive(r.letter, deadletter.OutcomeDelivered)
		case r.Kind == webhook.Retried:
			err = t.endRedrive(r.letter, deadletter.OutcomeFailing)
		}
		if err != nil {
			return err
		}
		if r.Finished && r.OrderKey != "" {
			keys = append(keys, ordering{r.Endpoint, r.OrderKey})
		}
	}
	return t.promote(keys)
}
