package idempotency

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// ID names a record: a principal and the digest of a key of theirs.
type ID struct {
	Scope string
	Key   string // the digest that [Digest] makes; never the key itself
}

// EventScope begins the scope of a consumed event's record; its consumer group
// follows.
const EventScope = "event:"

// EventProgressScope begins the scopes of the records that say how far an event
// is; its consumer group follows.
const EventProgressScope = "event-progress:"

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

// Response is a stored response.
type Response struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	// Tombstone says that Body is missing: it was too large, or streamed.
	Tombstone string `json:"tombstone,omitempty"`
}

// The values of [Response.Tombstone].
const (
	Oversize = "oversize"
	Streamed = "streamed"
)

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

// Claim asks for the right to run an operation.
type Claim struct {
	ID          ID
	Fingerprint string
	Operation   string
	Owner       string // random, for this claim alone
	Lease       time.Duration
	Retention   time.Duration
	// Rerun lets a run whose lease is over be taken over. Without it such a
	// run is held: it may have happened.
	Rerun bool
}

// Token proves a claim. A zero Fence stands for the owner's, whatever it is.
type Token struct {
	ID    ID
	Owner string
	Fence int64
}

// ClaimOutcome is what a claim comes to.
type ClaimOutcome uint8

const (
	// Refused is the zero value; no store returns it.
	Refused ClaimOutcome = iota
	// Acquired: run it. Record has the fence.
	Acquired
	// InProgress: another run works on it. LeaseLeft says for how long at
	// least that is taken for granted.
	InProgress
	// Replay: it is done. Record has the response.
	Replay
	// Mismatch: the key was used for something else.
	Mismatch
	// Unknown: it is held.
	Unknown
)

// Verdict is what a store says to a claim.
type Verdict struct {
	Outcome   ClaimOutcome
	Record    Record
	LeaseLeft time.Duration
}

// Filter chooses records. Empty fields choose all.
type Filter struct {
	Scope string
	Key   string // a digest, see [ID]
	State State
	After ID  // continues a list behind this record; lists are ordered by ID
	Limit int // default 100, at most 1,000
}

// Resolution is an operator's word on a held record.
type Resolution struct {
	// Response is what duplicates get from now on. Nil means that it did not
	// happen: the next claim runs.
	Response *Response
	By       string
	Why      string
	// Fence is that of the record as the operator saw it: of a later run it
	// is not their word, and ErrNotHeld refuses it. 0 is any.
	Fence int64
}

// The errors of a [Store].
var (
	// ErrFenced refuses a write of a run whose claim has passed to another.
	ErrFenced   = errors.New("claim lost to another owner")
	ErrNotFound = errors.New("no such idempotency record")
	// ErrNotHeld refuses to resolve a record that needs no resolving.
	ErrNotHeld = errors.New("the outcome of this record is not unknown")
)

// Store keeps records. Every method is atomic and durable when it returns, and
// goes by the store's clock alone. Implementations are safe for concurrent use
// and pass storetest. [Claim.Against] is the state machine, for those that can
// run Go code under a lock.
type Store interface {
	// Claim gives the operation to the caller or says why not. A record that
	// has expired is as good as absent, but for its fence.
	Claim(ctx context.Context, c Claim) (Verdict, error)
	// Renew makes the lease last for lease from now on, or returns ErrFenced.
	Renew(ctx context.Context, t Token, lease time.Duration) error
	// Complete stores the response, to be kept for retention from now on. It
	// works on a record that is started or was held meanwhile, as long as
	// no other run was given it; otherwise it returns ErrFenced.
	Complete(ctx context.Context, t Token, a Response, retention time.Duration) error
	// Release ends a claim without a result, under the same conditions.
	Release(ctx context.Context, t Token) error
	// Hold ends a claim whose outcome is unknown, under the same conditions.
	Hold(ctx context.Context, t Token, why string) error
	// Get returns a record, or ErrNotFound.
	Get(ctx context.Context, id ID) (Record, error)
	// List returns records without their responses' bodies. With State Held it
	// finds those too whose lease is over and that may not be repeated.
	List(ctx context.Context, f Filter) ([]Record, error)
	// Resolve ends a held record. Any other, and one of another fence than the
	// resolution's, is left as it is: ErrNotHeld.
	Resolve(ctx context.Context, id ID, r Resolution) error
	// Sweep deletes at most limit records that have expired and returns their
	// number. A held record stays.
	Sweep(ctx context.Context, limit int) (int, error)
}

// Waker is a store that hears of the ends of other processes' runs. Duplicates that
// wait are woken by it; polling remains the truth, so that it need not be reliable.
type Waker interface {
	Store
	// Wakes calls wake with the [ID]'s Key of each record that has ended anywhere, and
	// with "" when it begins to listen, or any may have ended unheard. It goes on
	// until ctx ends, or returns at once where there is nothing to listen to. wake is
	// quick, and safe for concurrent use.
	Wakes(ctx context.Context, wake func(key string))
}

// Against is the state machine: what becomes of old, the record at hand or nil,
// when c is put to it at now. The record returned is to be stored when the
// outcome is Acquired, or Unknown.
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
	case rec.Fingerprint != c.Fingerprint:
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

// Abandoned is the note of a record that is held because its owner vanished.
const Abandoned = "the owner's lease ran out"

// begin returns rec as the run that c begins: with the next fencing number, and
// nothing left of a run before it.
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

// Holds reports whether t is the claim that a record is under: whether its
// holder may still write the end of it.
func (r *Record) Holds(t Token) bool {
	return (r.State == Started || r.State == Held) && r.Owner == t.Owner && (t.Fence == 0 || r.Fence == t.Fence)
}

// Max returns the number of records in one page of a list.
func (f Filter) Max() int {
	if f.Limit <= 0 {
		return 100
	}
	return min(f.Limit, 1000)
}

// HoldAbandoned makes a record that was abandoned by now what the next claim would
// make of it: held, unless it may be repeated.
func (r *Record) HoldAbandoned(now time.Time) {
	if r.State == Started && !r.Rerun && !r.LeaseEnd.After(now) {
		r.State, r.Note = Held, Abandoned
	}
}

// Text is what a record notes of its resolution.
func (r Resolution) Text() string {
	return "resolved by " + cmp.Or(r.By, "somebody") + ": " + cmp.Or(r.Why, "no reason given")
}
