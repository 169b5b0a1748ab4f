package idempotency

import "time"

// Record is what a store keeps. All times are the store's.
type Record struct {
	ID          ID
	Fingerprint string
	Operation   string // what it was, for people: method and path
	State       State
	Rerun       bool // an abandoned run may be repeated
	Owner       string
	Fence       int64 // grows with every claim, never falls back
	Attempt     int   // claims since the record was last fresh
	LeaseEnd    time.Time
	Created     time.Time
	Completed   time.Time
	Expires     time.Time
	Response    *Response // of a completed record
	Note        string    // why it is held, or who resolved it
}

// State says where a record stands.
type State string

const (
	// Started: a run works on it, under a lease.
	Started State = "started"
	// Completed: done, with a response for all duplicates until it expires.
	Completed State = "completed"
	// Released: it ended without a result that counts; the next claim runs.
	Released State = "released"
	// Held: it may have happened, or not. No duplicate runs until it is
	// resolved, and it does not expire.
	Held State = "held"
)

// Holds reports whether a record is under the claim of t, so that its holder may still
// write the end of the run.
func (r *Record) Holds(t Token) bool {
	return (r.State == Started || r.State == Held) && r.Owner == t.Owner && (t.Fence == 0 || r.Fence == t.Fence)
}

// HoldAbandoned holds a record that was abandoned by now, as the next claim would,
// unless it may be repeated.
func (r *Record) HoldAbandoned(now time.Time) {
	if r.State == Started && !r.Rerun && !r.LeaseEnd.After(now) {
		r.State, r.Note = Held, Abandoned
	}
}

// Abandoned is the note of a record that is held because its owner vanished.
const Abandoned = "the owner's lease expired"
