package idempotency

import "time"

// Claim asks for the right to run an operation.
type Claim struct {
	ID          ID
	Fingerprint string
	Operation   string
	Owner       string // random, for this claim alone
	Lease       time.Duration
	Retention   time.Duration
	// Rerun lets another claim take over a run whose lease is over. Without it such a
	// run is held: it may have happened.
	Rerun bool
}

// Token proves a claim. A zero Fence matches any of the owner's.
type Token struct {
	ID    ID
	Owner string
	Fence int64
}

// ClaimOutcome is the result of a claim.
type ClaimOutcome uint8

const (
	// Refused is the zero value; no store returns it.
	Refused ClaimOutcome = iota
	// Acquired: run it. Record has the fence.
	Acquired
	// InProgress: another run works on it, for at least LeaseLeft.
	InProgress
	// Replay: it is done. Record has the response.
	Replay
	// Mismatch: the key was used for something else.
	Mismatch
	// Unknown: it is held.
	Unknown
)

// Verdict is a store's response to a claim.
type Verdict struct {
	Outcome   ClaimOutcome
	Record    Record
	LeaseLeft time.Duration
}

// Against is the state machine of a record: it applies c to old, the stored record or
// nil, at now. Store the record that it returns when the outcome is Acquired or Unknown.
func (c Claim) Against(old *Record, now time.Time) (Record, ClaimOutcome) {
	if old == nil {
		return c.begin(Record{ID: c.ID, Created: now}, now), Acquired
	}
	rec := *old
	abandoned := rec.State == Started && !rec.LeaseEnd.After(now)
	if rec.State != Held && !rec.Expires.After(now) && (rec.State != Started || abandoned && rec.Rerun) {
		return c.begin(Record{ID: c.ID, Created: now, Fence: rec.Fence}, now), Acquired
	}
	switch {
	case !c.matches(&rec):
		return rec, Mismatch
	case rec.State == Completed:
		return rec, Replay
	case rec.State == Held:
		return rec, Unknown
	case rec.State == Released, abandoned && rec.Rerun && c.Rerun:
		return c.begin(rec, now), Acquired
	case abandoned:
		rec.State, rec.Note = Held, Abandoned
		return rec, Unknown
	default:
		return rec, InProgress
	}
}

// begin returns rec as the run that c begins: with the next fencing number, and
// nothing of an earlier run.
func (c Claim) begin(rec Record, now time.Time) Record {
	rec.Fingerprint, rec.Operation, rec.Rerun = c.Fingerprint, c.Operation, c.Rerun
	rec.State, rec.Owner, rec.Response, rec.Note = Started, c.Owner, nil, ""
	rec.Fence++
	rec.Attempt++
	rec.LeaseEnd = now.Add(c.Lease)
	rec.Completed = time.Time{}
	rec.Expires = rec.LeaseEnd.Add(c.Retention)
	return rec
}

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
const Abandoned = "the owner's lease ran out"
