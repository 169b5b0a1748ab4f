package sqlstore

import (
	"database/sql"
	"sync"
	"time"
)

// The store's clock may be wrong: hours ahead for seconds, or for long until it is set
// back. What was written then is due hours late, and a lease that was taken then ends as
// late. So each row says when its due time or its lease was written, and what was written in
// the future is found by that: no schedule has to be known, and what waits for good
// reasons is not looked at. A due time keeps the wait that it was written with.

// ahead is how far in the future a row must have been written. Clocks of servers that take
// over from each other differ by less, and no one misses so short a time.
const ahead = 20 * time.Second

// steady is for how long such rows must have been found before they are changed. While a
// clock is behind, if only for seconds, all that was written before looks like them.
const steady = 30 * time.Second

// latest is longer than the leases of heartbeats and redrive jobs, and than alerts wait,
// which are few and do not say when they were written. What is later is of a clock that was
// ahead.
const latest = 15 * time.Minute

// lasting knows since when something has been found each time. The zero value has found
// nothing. It is safe for concurrent use.
type lasting struct {
	mu    sync.Mutex
	since time.Time
}

// found records whether it was found, and reports whether it has been for long enough.
func (l *lasting) found(now bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !now:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = time.Now()
	}
	return now && time.Since(l.since) >= steady
}

// Leases and waits that were written by a clock that was ahead. Most leases are not longer
// than ahead, so that the index of leases finds few.
const (
	leaseAhead = `lease > {now} AND written > {now}`
	waitAhead  = stateWaiting + ` AND written > {now}`
)

// dueAgain is when a waiting delivery is due by the clock of today.
const dueAgain = `({t} + (due - written))`

// setRight takes deliveries back, and makes others due, that were leased or put off by a
// clock that was ahead. It returns their number.
func (t *tx) setRight(limit int) (int, error) {
	var lease, wait sql.NullInt64
	// The order is that of the indexes: without it a plan may look for the first one among
	// a million that are scheduled.
	_, err := t.row([]any{&lease, &wait}, `SELECT (SELECT id FROM forbear_deliveries WHERE `+stateLeased+` AND `+leaseAhead+` ORDER BY lease LIMIT 1),
		(SELECT id FROM forbear_deliveries WHERE `+waitAhead+` ORDER BY written LIMIT 1)`, after(ahead), after(ahead), after(ahead))
	if err != nil || !t.db.ahead.found(lease.Valid || wait.Valid) {
		return 0, err
	}
	n, err := t.takeBack(leaseAhead, after(ahead), after(ahead), limit)
	if err == nil && n == 0 {
		n, err = t.turnBack(limit)
	}
	return n, err
}

// turnBack makes deliveries that wait due after their own wait, when they were written by a
// clock that was ahead, and returns their number. None is due earlier than it was meant to
// be. Its 24 hours begin no later than that.
func (t *tx) turnBack(limit int) (int, error) {
	n, err := t.exec(`UPDATE forbear_deliveries SET due = `+dueAgain+`, start = CASE WHEN start > `+dueAgain+` THEN `+dueAgain+` ELSE start END, written = {t}
		WHERE id IN (SELECT id FROM forbear_deliveries WHERE `+waitAhead+` ORDER BY written LIMIT ? {skip locked})`,
		after(0), after(0), after(0), after(0), after(ahead), limit)
	return int(n), err
}

// turnLeasesBack lets the leases of idempotency records end that were taken by a clock that
// was ahead: each after its own length. A run that goes on renews it.
func (t *tx) turnLeasesBack(limit int) error {
	const such = `(scope, hash) IN (SELECT scope, hash FROM forbear_idempotency WHERE ` + recordTaken + ` AND ` + recordStarted + ` AND written > {now} LIMIT ? {skip locked})`
	var found bool
	_, err := t.row([]any{&found}, `SELECT COALESCE(max(written), 0) > {t} FROM forbear_idempotency WHERE `+recordTaken+` AND `+recordStarted, after(ahead))
	if err != nil || !t.db.keys.found(found) {
		return err
	}
	_, err = t.exec(`UPDATE forbear_idempotency SET lease = {t} + (lease - written), expires = {t} + (expires - written), written = {t} WHERE `+such,
		after(0), after(0), after(0), after(ahead), limit)
	return err
}
