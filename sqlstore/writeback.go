package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook/store"
)

// A write-back is what became of claimed deliveries. It is one transaction with
// all that it entails, so that a crash leaves a delivery either leased, to be
// claimed again when the lease ends, or finished with its letter, its alert and
// the next of its key on its way.

// WriteBackAndClaim implements store.Store. The claim follows the write-back, so
// that what that let go, the next message of a key, can be claimed.
func (w *Webhooks) WriteBackAndClaim(ctx context.Context, turn store.Step) (done store.StepResult, err error) {
	if len(turn.WriteBacks) > 0 {
		if done.OK, err = w.writeBack(ctx, turn.WriteBacks); err != nil {
			return done, err
		}
	}
	if len(turn.Lanes) == 0 {
		return done, nil
	}
	claimed, err := w.claim(ctx, turn)
	if err != nil && len(turn.WriteBacks) > 0 {
		return done, nil // the claim is made with the next turn
	}
	done.Claimed, done.Next = claimed.Claimed, claimed.Next
	return done, err
}

// claim takes what is due.
func (w *Webhooks) claim(ctx context.Context, turn store.Step) (store.StepResult, error) {
	c := claim{owner: turn.Owner, lease: turn.Lease, lanes: turn.Lanes, which: claimDue}
	began := time.Now()
	end := began.Add(turn.Lease)
	// A lease ends with the machine that holds it: a claim need not wait for the
	// disk.
	done, err := doAs(ctx, w.db, op{volatile: true, apart: true}, func(t *tx) (store.StepResult, error) { return t.db.d.claim(t, c) })
	until(done.Claimed, end)
	if err == nil {
		w.db.notify.drained(short(turn.Lanes, done.Claimed), began)
	}
	return done, err
}

// writeBack writes outcomes back. ok has a place for each, also after an error: what is
// true there was written all the same.
func (w *Webhooks) writeBack(ctx context.Context, outcomes []store.WriteBack) (ok []bool, err error) {
	// All that can fail without the database comes before the transaction.
	rows, err := newWriteBacks(outcomes)
	if err != nil {
		return nil, err
	}
	letters, err := w.db.encodeLetters(outcomes)
	if err != nil {
		return nil, err
	}
	left := slices.Clone(rows)
	if plain := w.db.d.plain(rows); len(plain) > 0 {
		if err := w.db.submit(ctx, &op{apart: true, run: func(t *tx) error { return t.writeRows(plain, false) }}); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(r *writeBack) bool { return r.ok })
	}
	// Noted before the second part, which may fail, and be under way still.
	ok = make([]bool, len(rows))
	note := func() {
		for i, r := range rows {
			ok[i] = r.ok
		}
	}
	note()
	if len(left) > 0 {
		// Alone, and by their numbers: those of another step in the same transaction
		// would be locked in another order than cancelling locks them.
		slices.SortFunc(left, func(a, b *writeBack) int { return cmp.Compare(a.ID, b.ID) })
		if err := w.db.submit(ctx, &op{keys: finishedKeys(left), run: func(t *tx) error { return t.writeBack(left, letters) }}); err != nil {
			return ok, err
		}
		note()
	}
	return ok, nil
}

// short returns the endpoints that got less than they wanted.
func short(lanes []store.Lane, claimed []store.Delivery) (endpoints []string) {
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

// writeBack is an outcome as its row wants it.
type writeBack struct {
	*store.WriteBack `json:"-"`

	ID       int64    `json:"id"`
	Fence    int64    `json:"fence"`
	State    rowState `json:"state"`
	After    int64    `json:"after"` // microseconds
	Progress *string  `json:"progress"`
	Finished bool     `json:"finished"`

	// What the write returned: whether the row was still this lease's, and the
	// letter that it redrives.
	ok     bool
	letter string
}

// newWriteBacks makes rows of outcomes. The outcomes must stay as they are until
// the write-back has ended.
func newWriteBacks(outcomes []store.WriteBack) ([]*writeBack, error) {
	rows := make([]*writeBack, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		r := &writeBack{WriteBack: o, ID: o.ID, Fence: o.Fence, State: waiting, After: o.After.Microseconds()}
		switch o.Kind {
		case store.Delivered:
			r.State, r.Finished = delivered, true
		case store.Dead:
			r.State, r.Finished = dead, true
		}
		// What is delivered needs its progress no more, and what was released
		// untouched keeps the one that it has.
		if o.Kind != store.Delivered && !(o.Kind == store.Released && o.Progress == edge.Progress{}) {
			text, err := json.Marshal(o.Progress)
			if err != nil {
				return nil, err
			}
			r.Progress = new(string(text))
		}
		rows[i] = r
	}
	return rows, nil
}

// finishedKeys returns the locks of the keys whose next message may go.
func finishedKeys(rows []*writeBack) (keys keyLocks) {
	for _, r := range rows {
		if r.Finished && r.OrderKey != "" {
			keys.add(r.Endpoint, r.OrderKey)
		}
	}
	return keys
}

// writeBack writes outcomes back, fenced, with their history and what they
// entail. It marks those that are written; for one whose lease has passed to
// another nothing is.
func (t *tx) writeBack(rows []*writeBack, letters map[int64]letterRow) error {
	if err := t.writeRows(rows, true); err != nil {
		return err
	}
	return t.followUp(rows, letters)
}

// writeRows is the dialect's, which may be called again.
func (t *tx) writeRows(rows []*writeBack, all bool) error {
	for _, r := range rows {
		r.ok, r.letter = false, "" // of an earlier try
	}
	return t.db.d.writeRows(t, rows, all)
}

// leaseID names one claim of a delivery.
type leaseID struct{ id, fence int64 }

// written returns the function for each that marks the rows which a statement
// has written: it returns id, fence and letter.
func written(index map[leaseID]*writeBack) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var id leaseID
		var letter string
		err := r.Scan(&id.id, &id.fence, &letter)
		if row := index[id]; row != nil {
			row.ok, row.letter = true, letter
		}
		return err
	}
}

// followUp does what a delivery that was written back entails, in the same
// transaction: its letter and alert, the redrive that it belongs to, the next
// of its key, whose lock the transaction holds.
func (t *tx) followUp(rows []*writeBack, letters map[int64]letterRow) error {
	var keys []ordering
	var unreadable []int64
	for _, r := range rows {
		if !r.ok {
			continue
		}
		if r.Unreadable {
			unreadable = append(unreadable, r.ID)
		}
		var err error
		switch {
		case r.Kind == store.Dead:
			err = t.deadLetter(r.ID, r.letter, letters[r.ID])
		// It redrives nothing.
		case r.letter == "":
		case r.Kind == store.Delivered:
			err = t.endRedrive(r.letter, deadletter.RedriveDelivered)
		case r.Kind == store.Retried:
			err = t.endRedrive(r.letter, deadletter.RedriveFailing)
		}
		if err != nil {
			return err
		}
		// The next of its key may go, in this transaction or never: no one would look
		// for it later.
		if r.Finished && r.OrderKey != "" {
			keys = append(keys, ordering{r.Endpoint, r.OrderKey})
		}
	}
	if len(unreadable) > 0 {
		if _, err := t.exec(`UPDATE forbear_deliveries SET unreadable = fence WHERE id IN ({ids})`, asJSON{unreadable}); err != nil {
			return err
		}
	}
	return t.promote(keys)
}

// encodeLetters encodes the letters of the outcomes that have one, by the id of
// the delivery.
func (db *DB) encodeLetters(outcomes []store.WriteBack) (map[int64]letterRow, error) {
	letters := map[int64]letterRow{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Kind != store.Dead {
			continue
		}
		if o.Dead == nil {
			return nil, fmt.Errorf("delivery %d: dead without a letter", o.ID)
		}
		var err error
		if letters[o.ID], err = db.encodeLetter(*o.Dead); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// deadLetter adds the letter of a delivery with its history, or returns the
// letter that was being redriven to the dead ones.
func (t *tx) deadLetter(delivery int64, redriven string, l letterRow) (err error) {
	history, err := collect(t, t.db.scanAttempts(delivery), historyQuery, delivery)
	if err != nil {
		return err
	}
	known := l.Error != ""
	if l.SetHistory(history); !known {
		l.Cause = l.Fingerprint()
	}
	if redriven == "" {
		return t.putLetter(l)
	}
	if err := t.db.moveLetter(&l, redriven); err != nil {
		return err
	}
	args := append(l.cause(), string(deadletter.RedriveDead), after(0), l.ID)
	if _, err = t.exec(`UPDATE forbear_letters SET `+setCause+`, `+letterDead+`, outcome = ?, dead_at = {t} WHERE id = ?`, args...); err != nil {
		return err
	}
	t.raise(alertOf(l.Letter))
	return nil
}
