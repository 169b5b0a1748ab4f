package idempotency

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// ID names a record: a principal and the digest of a key of theirs.
type ID struct {
	Scope string
	Key   string // the digest that [Digest] makes; never the key itself
}

// EventScope begins the scope of a consumed event's record, before its consumer group.
const EventScope = "event:"

// EventProgressScope begins the scopes of the records of an event's progress, before its
// consumer group.
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

// Resolution is an operator's decision about a held record.
type Resolution struct {
	// Response is what duplicates get from now on. Nil means that it did not
	// happen: the next claim runs.
	Response *Response
	By       string
	Why      string
	// Fence is that of the record as the operator saw it. A record of a later run
	// is refused with ErrNotHeld. 0 is any.
	Fence int64
}

// Text is what a record notes of its resolution.
func (r Resolution) Text() string {
	return "resolved by " + cmp.Or(r.By, "an unnamed operator") + ": " + cmp.Or(r.Why, "no reason given")
}

// The errors of a [Store].
var (
	// ErrFenced refuses a write of a run whose claim has passed to another.
	ErrFenced   = errors.New("claim lost: another run owns the key")
	ErrNotFound = errors.New("no such idempotency record")
	// ErrNotHeld refuses to resolve a record whose outcome is known.
	ErrNotHeld = errors.New("this record is not held: its outcome is known")
)

// Store keeps records. Every method is atomic and durable when it returns, and
// uses the store's clock alone. Implementations are safe for concurrent use.
//
// To keep records in a database of your own, implement Store and run
// storetest.RunIdempotency against it. [Claim.Against] is the state machine, for stores
// that can run Go code under a lock.
type Store interface {
	// Claim gives the operation to the caller or says why not. An expired record
	// counts as absent, except for its fence.
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
	// List returns records without their responses' bodies. State Held includes
	// records whose lease is over and that may not be repeated.
	List(ctx context.Context, f Filter) ([]Record, error)
	// Resolve ends a held record. Any other record, and one whose fence is not the
	// resolution's, is left unchanged: ErrNotHeld.
	Resolve(ctx context.Context, id ID, r Resolution) error
	// Sweep deletes at most limit records that have expired and returns their
	// number. A held record stays.
	Sweep(ctx context.Context, limit int) (int, error)
}

// Waker is a store that notices when runs of other processes end, and wakes the
// duplicates that wait for them. It need not be reliable: they poll as well.
type Waker interface {
	Store
	// Wakes calls wake with the [ID]'s Key of each record that has ended anywhere. It
	// calls wake with "" when it begins to listen, and when it may have missed one. It
	// returns when ctx ends, or at once if there is nothing to listen to. wake is
	// quick, and safe for concurrent use.
	Wakes(ctx context.Context, wake func(key string))
}

const (
	sweepEvery = 5 * time.Minute
	sweepBatch = 1000
)

// RunSweeper deletes expired records until ctx ends, in small batches, every
// five minutes or so. Any number of processes may run it on one store.
func RunSweeper(ctx context.Context, store Store, log *slog.Logger) {
	log = cmp.Or(log, slog.Default())
	for {
		if !wait.Sleep(ctx, wait.Jitter(2*sweepEvery)) {
			return
		}
		for n := sweepBatch; n == sweepBatch && ctx.Err() == nil; {
			var err error
			if n, err = store.Sweep(ctx, sweepBatch); err != nil {
				log.LogAttrs(ctx, slog.LevelWarn, "idempotency: sweep failed", slog.String("error", err.Error()))
			}
		}
	}
}
