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
