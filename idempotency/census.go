package idempotency

import (
	"context"
	"strings"
	"time"
)

// Census counts the records that wait: they are not done, and no run works on them.
// Requests and consumed events are counted separately.
type Census struct {
	Requests, Events Waiting
}

// Waiting is one part of a [Census]. Its zero value is none.
type Waiting struct {
	// Held are the records whose outcome is unknown and that wait for an
	// operator, as a list of [Held] has them; those of dead-lettered events wait
	// for a redrive, and are not counted. HeldFor is the age of the oldest, since
	// it was first claimed.
	Held    int
	HeldFor time.Duration
	// Overdue are the runs whose lease is over and that may be repeated: they
	// wait for the next attempt. OverdueFor is how long the lease of the first of
	// them has been over.
	Overdue    int
	OverdueFor time.Duration
}

// MaxCensus bounds a [Census]: where more records wait than this, some are left
// out of it.
const MaxCensus = 10_000

// Counter is a [Store] that counts what waits, cheaply enough to be asked every
// quarter of a minute. The stores of this repository are Counters.
type Counter interface {
	// Census counts. The error is the store's. Several may be asked for at the
	// same time.
	Census(ctx context.Context) (Census, error)
}

// DeadLetterNote is the note of a held record whose event is a dead letter:
// duplicates of it are dropped, a redrive is not.
const DeadLetterNote = "dead letter"

// Add counts a record as of now. Stores that cannot count by a query use it, for
// records that [Record.HoldAbandoned] has brought up to date.
func (c *Census) Add(r *Record, now time.Time) {
	w := &c.Requests
	switch {
	case strings.HasPrefix(r.ID.Scope, EventProgressScope):
		return
	case strings.HasPrefix(r.ID.Scope, EventScope):
		w = &c.Events
	}
	switch {
	case r.State == Held && r.Note != DeadLetterNote:
		w.Held++
		w.HeldFor = max(w.HeldFor, now.Sub(r.Created))
	case r.State == Started && r.Rerun && !r.LeaseEnd.After(now) && r.Expires.After(now):
		w.Overdue++
		w.OverdueFor = max(w.OverdueFor, now.Sub(r.LeaseEnd))
	}
}
