package idempotency

import (
	"cmp"
	"context"
	"errors"
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

// Filter chooses records. Empty fields choose all.
type Filter struct {
	Scope string
	Key   string // a digest, see [ID]
	State State
	After ID  // continues a list behind this record; lists are ordered by ID
	Limit int // default 100, at most 1,000
}

// Max returns the number of records in one page of a list.
func (f Filter) Max() int {
	if f.Limit <= 0 {
		return 100
	}
	return min(f.Limit, 1000)
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

// Text is what a record notes of its resolution.
func (r Resolution) Text() string {
	return "resolved by " + cmp.Or(r.By, "somebody") + ": " + cmp.Or(r.Why, "no reason given")
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
