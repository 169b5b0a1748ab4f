package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Applications insert into the outbox in their own transactions, by any
// statement that they like. Each row is moved in the transaction that deletes
// it: it is there or it is accepted, never both. Nothing in a row stops those
// behind it: what cannot be accepted becomes a dead letter with all that it had.
const (
	maxOutboxRow   = webhook.MaxPayload + 5<<18 // bytes: no valid row has more, whatever its headers' JSON escapes
	maxOutboxBatch = 32 << 20                   // bytes that are read at once
	maxFanOut      = 4 << 10                    // deliveries of one transaction, or those of one row
	relayTries     = 3                          // of one row
	// relayPause, doubled with each try, is the ceiling of the wait before it.
	relayPause = 50 * time.Millisecond
)

// admit is the dispatcher's part of an acceptance: it completes a message, says
// what is wrong with it and which of its endpoints keep the order of keys.
type admit = func(*webhook.Message) (ordered map[string]bool, err error)

// Relay implements store.Store. One transaction moves many rows. When it
// fails they are moved one by one, and then more and more of them, so that the one to
// blame, if there is one, becomes a dead letter and holds no one up.
func (w *Webhooks) Relay(ctx context.Context, limit int, ok admit) (done store.RelayResult, err error) {
	ids, err := readAll(ctx, w.db, one[int64], `SELECT id FROM forbear_outbox ORDER BY id LIMIT 1`)
	if err == nil && len(ids) == 0 {
		var back bool
		if back, err = w.comesBack(ctx); back {
			ids = []int64{0}
		}
	}
	if err != nil || len(ids) == 0 {
		return done, err
	}
	r := &relaying{w: w, ok: ok, behind: math.MinInt64}
	if before := w.db.passed.Swap(nil); before != nil {
		r.behind, r.keys = before.behind, before.keys
	}
	for n := limit; done.Rows < limit; n = min(2*n, limit-done.Rows) {
		// All at once first: nearly every relay ends here.
		some, err := r.move(ctx, n, false)
		if err != nil && ctx.Err() == nil {
			n = 1
			some, err = r.moveOne(ctx)
		}
		done.Rows += some.Rows
		done.Accepted += some.Accepted
		done.Dead = append(done.Dead, some.Dead...)
		if done.Stuck = append(done.Stuck, some.Stuck...); err != nil {
			return done, err
		}
		if some.Rows == 0 || n == limit {
			break
		}
	}
	switch {
	case len(done.Stuck) >= maxPassed:
		w.db.passed.Store(r)
	case done.Rows == 0 && len(done.Stuck) == 0:
		done.Stuck, err = w.waits(ctx)
	}
	return done, err
}

// maxPassed bounds the rows that one Relay passes, each in a transaction of its own. Where
// more of them stay, as they all do when their role lost its rights, the next one goes on
// behind them, until it comes to the end.
const maxPassed = 64

// moveOne moves one row, which is blamed at its last try only: the database may have been
// busy, or away for a moment.
func (r *relaying) moveOne(ctx context.Context) (done store.RelayResult, err error) {
	for try := 1; ; try++ {
		if done, err = r.move(ctx, 1, try == relayTries); err == nil || try == relayTries {
			return done, err
		}
		if !wait.Sleep(ctx, wait.Jitter(relayPause<<(try+1))) {
			return done, err
		}
	}
}

// outboxPatience is how long the first row may wait while none can be moved, before that is
// said. Who holds it for a moment is no one to speak of.
const outboxPatience = time.Minute

// waits says that rows wait, when they have done so for long: what is not moved is passed
// over without an error.
func (w *Webhooks) waits(ctx context.Context) (stuck []error, err error) {
	age, err := w.OutboxAge(ctx)
	if err == nil && age > outboxPatience {
		stuck = []error{fmt.Errorf("no row of the outbox can be moved, and the first has waited for %v: another transaction has locked them (on PostgreSQL, see pg_locks), or their application or endpoint cannot be read", age.Round(time.Second))}
	}
	return stuck, err
}

// OutboxAge returns how long the first row of the outbox has been waiting; 0
// when there is none.
func (w *Webhooks) OutboxAge(ctx context.Context) (age time.Duration, err error) {
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var now int64
		var created any // SQLite takes anything
		if err := r.Scan(&created, &now); err != nil {
			return err
		}
		if us, ok := created.(int64); ok {
			age = max(time.Duration(now-us)*time.Microsecond, 0)
		}
		return nil
	}, `SELECT created, {t} FROM forbear_outbox ORDER BY id LIMIT 1`, after(0))
	return age, err
}

// relaying is one Relay, and what it has passed over: rows that cannot be accepted for
// now. They hold up those of their key, and no others.
type relaying struct {
	w      *Webhooks
	ok     admit
	behind int64 // the last row of those that were read and wait, all of them
	keys   map[string]bool
}

// relayed is what came of a transaction.
type relayed struct {
	store.RelayResult
	last  int64           // the row up to which it read
	waits map[string]bool // the keys of rows that wait, "" of those without one
}

// move moves the first rows that can be moved.
func (r *relaying) move(ctx context.Context, limit int, last bool) (store.RelayResult, error) {
	var stuck []error
	for {
		done, err := do(ctx, r.w.db, func(t *tx) (relayed, error) { return t.relay(r, limit, last) })
		stuck = append(stuck, done.Stuck...)
		if done.Stuck = stuck; err != nil || done.Rows > 0 || len(done.waits) == 0 {
			return done.RelayResult, err
		}
		if r.behind, r.keys = done.last, done.waits; len(stuck) >= maxPassed {
			return done.RelayResult, nil
		}
	}
}

// relay moves rows of the outbox from the first one on. Rows are found by being there,
// and by "id greater than the last one" in one Relay only: ids are given out before their
// transactions commit. last says that a row that cannot be moved becomes a
// dead letter, whatever the reason.
func (t *tx) relay(r *relaying, limit int, last bool) (done relayed, err error) {
	if mine, err := t.db.d.tryLock(t, relayLock); err != nil || !mine {
		return done, err
	}
	aside, err := t.readmit(limit)
	if err != nil {
		return done, err
	}
	if !last {
		return t.moveRows(r, limit, false, aside)
	}
	err = t.sheltered(func() (err error) {
		done, err = t.moveRows(r, limit, true, aside)
		return err
	})
	if err == nil || t.couldAccept(probeEndpoints) != nil { // else the store is to blame
		return done, err
	}
	return t.pass(r, err)
}

// pass leaves the first row where it is, and says why: its page is damaged and it cannot be
// read, or a trigger refuses to delete it.
func (t *tx) pass(r *relaying, why error) (done relayed, err error) {
	o := &outboxRow{}
	if found, err := t.row([]any{&o.id}, `SELECT id FROM forbear_outbox WHERE id > ? ORDER BY id LIMIT 1 {skip locked}`, r.behind); err != nil || !found {
		return done, err
	}
	var key any
	_ = t.sheltered(func() error { // without its key it holds up no others
		_, err := t.row([]any{&key}, `SELECT order_key FROM forbear_outbox WHERE id = ?`, o.id)
		return err
	})
	o.msg.Key = text(key)
	done.waits = maps.Clone(r.keys)
	done.wait(o)
	done.last = o.id
	done.Stuck = []error{fmt.Errorf("row %d of the outbox cannot be moved and is skipped: %w", o.id, why)}
	return done, nil
}

// moveRows reads rows, accepts them or makes letters of them, and takes them out of the
// outbox.
func (t *tx) moveRows(r *relaying, limit int, last bool, aside []string) (done relayed, err error) {
	list, err := t.outboxRows(r.behind, limit)
	if err != nil || len(list) == 0 {
		return done, err
	}
	if err := t.behind(list, aside); err != nil {
		return done, err
	}
	done.waits = maps.Clone(r.keys)
	if list, err = t.acceptOutbox(list, r.ok, last, &done); err != nil {
		return done, err
	}
	ids := make([]int64, 0, len(list))
	for _, o := range list {
		done.last = o.id
		if o.waits {
			continue
		}
		ids = append(ids, o.id)
		switch {
		case o.aside:
			if err := t.putAside(o); err != nil {
				return done, err
			}
			continue
		case o.bad == nil:
			if o.call.rows[0].fresh {
				done.Accepted++
			}
			continue
		}
		l, err := t.refuse(o)
		if err != nil {
			return done, err
		}
		done.Dead = append(done.Dead, l)
	}
	done.Rows = len(ids)
	deleted, err := t.exec(`DELETE FROM forbear_outbox WHERE id IN ({ids})`, asJSON{ids})
	if err == nil && deleted != int64(len(ids)) { // they would be accepted again and again
		err = fmt.Errorf("of %d rows of the outbox only %d could be deleted: look for a trigger or a row-level policy that keeps them", len(ids), deleted)
	}
	return done, err
}

// wait leaves a row where it is, and those of its key that come behind it.
func (r *relayed) wait(o *outboxRow) {
	o.waits = true
	if r.waits == nil {
		r.waits = map[string]bool{}
	}
	r.waits[o.msg.Key] = true
}

// acceptOutbox accepts rows, and returns those that it came to: the endpoints of an
// application multiply them. What is wrong with one of them is noted there.
func (t *tx) acceptOutbox(list []*outboxRow, ok admit, last bool, done *relayed) ([]*outboxRow, error) {
	var keys keyLocks
	var calls []*acceptance
	deliveries := 0
	for i, o := range list {
		if o.bad != nil || o.aside {
			continue
		}
		if o.msg.Key != "" && done.waits[o.msg.Key] {
			done.wait(o)
			continue
		}
		ordered, err := ok(&o.msg)
		if errors.Is(err, webhook.ErrUnreadable) {
			done.wait(o)
			continue
		}
		if o.aside = errors.Is(err, webhook.ErrSuspended); o.aside {
			continue
		}
		if errors.Is(err, webhook.ErrInvalid) || errors.Is(err, webhook.ErrUnknownEndpoint) || errors.Is(err, webhook.ErrUnknownApplication) {
			o.bad = err
			continue
		}
		if err != nil { // the row is not to blame: it could not be found out
			return nil, err
		}
		if deliveries += len(o.msg.Endpoints); deliveries > maxFanOut && i > 0 {
			list = list[:i]
			break
		}
		m, err := t.db.encode(o.msg)
		if err != nil {
			return nil, err
		}
		o.call = &acceptance{rows: []encoded{m}, ordered: ordered}
		if len(o.msg.Endpoints) == 0 {
			continue // no endpoint subscribes to it
		}
		keys |= o.call.keys()
		calls = append(calls, o.call)
	}
	if err := t.db.d.lockKeys(t, keys); err != nil {
		return nil, err
	}
	var err error
	if last && len(calls) > 0 {
		err = t.acceptOrBlame(list[0], calls)
	} else {
		err = t.acceptAll(calls)
	}
	for _, o := range list {
		switch {
		case err != nil || o.call == nil || o.bad != nil || o.call.refused == nil:
		case errors.Is(o.call.refused, webhook.ErrConflict):
			o.bad = o.call.refused
		default: // what is stored cannot be compared for now
			done.wait(o)
		}
	}
	return list, err
}

// acceptOrBlame accepts one row. When that fails, a message without any peculiarity
// can be accepted in its place, and the row fails once more, the row is to blame, and
// otherwise the store. The second time matters: a store that comes back between the
// row and the probe would make a dead letter of a sound message.
func (t *tx) acceptOrBlame(o *outboxRow, calls []*acceptance) error {
	accept := func() error { return t.sheltered(func() error { return t.acceptAll(calls) }) }
	err := accept()
	if err != nil {
		if probe := t.couldAccept(o.msg.Endpoints); probe != nil {
			return err
		}
		err = accept()
	}
	if err != nil && !errors.Is(err, errOwn) { // else the call knows why it was refused
		o.bad = fmt.Errorf("the store refused it: %w", err)
	}
	return nil
}

// sheltered runs f so that its failure does not end the transaction.
func (t *tx) sheltered(f func() error) error {
	if err := t.execOnce("SAVEPOINT forbear_row"); err != nil {
		return err
	}
	err := f()
	if err != nil {
		if back := t.execOnce("ROLLBACK TO SAVEPOINT forbear_row"); back != nil {
			return back // the connection is gone
		}
	}
	return cmp.Or(err, t.execOnce("RELEASE SAVEPOINT forbear_row"))
}

// refuse makes a dead letter of a row that cannot be accepted. It has the row
// as it is, unless that is too large: then the row is kept beside the outbox.
func (t *tx) refuse(o *outboxRow) (deadletter.Letter, error) {
	l := o.letter()
	l.State, l.EnqueuedAt, l.DeadAt = deadletter.Dead, t.db.now(), t.db.now()
	if o.large {
		if err := t.keepRefused(l.ID, o); err != nil {
			return l, err
		}
	}
	row, err := t.db.encodeLetter(l)
	if err != nil {
		return l, err
	}
	return l, t.putLetter(row)
}
