package deliverycheck

import (
	"context"
	"database/sql"
	"time"
)

// The times of a run, which are the product's own: its leases and its schedule.
const (
	// lease is how long a delivery that a dead process held is left alone, with
	// the time to find it.
	lease = 26 * time.Second
	// silence is how long nothing must arrive at the end of a run.
	silence = 2 * time.Second
	// stuck is how long a run may make no progress: longer than a lease.
	stuck = 45 * time.Second
	// longest bounds the wait for a run that does make progress.
	longest = 10 * time.Minute
	// look is how often the outbox and the arrivals are counted meanwhile.
	look = 100 * time.Millisecond
)

// Promised returns the identities of which something has to arrive. An accepted
// duplicate is a promise as well: its response said that the message is known.
func Promised(offers []*Offer) (list []Identity) {
	seen := map[Identity]bool{}
	for _, o := range offers {
		if !o.acknowledged() && (o.Result != Committed || o.Invalid != "") {
			continue
		}
		for _, e := range o.Endpoints {
			if i := (Identity{e, o.ID}); !seen[i] {
				seen[i] = true
				list = append(list, i)
			}
		}
	}
	return list
}

// Left counts the rows in the outbox. It goes to the table itself, since a metric
// could be wrong in the same way as the dispatcher.
func Left(ctx context.Context, db *sql.DB) (n int, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM forbear_outbox`).Scan(&n)
	return n, err
}

// AwaitQuiet waits until the outbox is empty, all promised messages have arrived
// and, after a kill, until what the dead process held may have been sent again.
// It gives up, without an error, when nothing happens any more: what is missing
// is for the judgement to find.
//
// It watches three figures and not a fixed time, because a slow machine needs longer
// for the same work.
func AwaitQuiet(ctx context.Context, db *sql.DB, r *Receiver, promised []Identity, lastKill time.Time) error {
	began, moved := time.Now(), time.Now()
	var before [3]int
	for {
		left, err := Left(ctx, db)
		if err != nil && ctx.Err() != nil {
			return err
		}
		now := [3]int{left, r.Missing(promised), r.Count()}
		if now != before {
			before, moved = now, time.Now()
		}
		idle := time.Since(moved)
		if err == nil && left == 0 && now[1] == 0 && idle > silence && time.Since(lastKill) > lease || idle > stuck || time.Since(began) > longest {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}
