package idempotency

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Options say how [Handler] works. Only Scope is required.
type Options struct {
	// Scope returns whose request it is: the authenticated principal or
	// tenant, never a header's value, which changes when a token is refreshed.
	// An error, or an empty scope, gets 401. [SingleTenant] is for
	// services with one caller.
	Scope func(*http.Request) (string, error)
	// Place returns where its key is valid, for handlers that serve several places
	// from one store: the same key at another place is another key. It has no spaces.
	// Nil, or "", adds nothing to the scope.
	Place func(*http.Request) string
	// Former returns the scope under which an earlier version kept the record of a request
	// whose Scope is scope, such as scope itself where Place is new; "" is none. A record
	// of the same request that is found there is moved: its response is replayed, its hold
	// holds. Unless sure, it may be another caller's, or of another place: then the key is
	// held, since neither may the operation be done twice nor its response be given away.
	// It costs each new key a look at the store. Not with Transaction.
	Former func(scope string) (former string, sure bool)

	// Retention is how long a response is kept after completion. Default 48 h;
	// less than 24 h is refused.
	Retention time.Duration
	// Lease is how long a run counts as alive without a heartbeat, which
	// comes every third of it. Default 30 s.
	Lease time.Duration
	// MaxRun ends the context of a run. Default 10 min.
	MaxRun time.Duration
	// Wait is how long a duplicate of a run under way waits for its response.
	// Default: a quarter longer than the longest of the latest runs of its operation
	// took, from 1 s to 30 s, and 5 s before any was seen; negative: not at all. The Retry-After
	// of one that has waited in vain follows the same time.
	Wait time.Duration
	// Poll is how often on average a duplicate that waits asks the store for a run of
	// another process. Default 25 ms at first, and 250 ms later. A store that is a
	// [Waker] wakes it besides.
	Poll time.Duration
	// MaxWaiters bounds the duplicates that wait for one key. Default 16.
	MaxWaiters int
	// MaxRequest and MaxResponse bound the bodies that are kept, in bytes.
	// Default 1 MiB each. A larger request gets 413. A larger response goes
	// out whole, and leaves a tombstone: duplicates get 409.
	MaxRequest, MaxResponse int64
	// BodyIdle is how long a request's body may stand still before it gets 408.
	// Default 5 s. A whole body has 10 s.
	BodyIdle time.Duration
	// StoreTimeout bounds each call of the store. Default 1 s for a claim; the
	// end of a run is tried three times for 2 s each, and then kept by the Backlog.
	StoreTimeout time.Duration
	// Backlog keeps the ends of runs that the store could not take, until it is back.
	// Its Store must be the handler's. Nil: one of the handler's own, with the
	// defaults. Give one where it is to be closed, to have a spool, or to be shared.
	Backlog *Backlog

	// Rerun declares that a run whose end is unknown may be repeated: it
	// then runs at most once per lease. Without it such an outcome is held for
	// an operator.
	Rerun bool
	// Optional passes a POST or PATCH without a key to the handler, unprotected.
	// Without it such a request is refused.
	Optional bool
	// Transaction runs the claim, the handler's own writes through [Tx] and
	// the completion in one transaction: the one mode that is exact. The store
	// must be a [Transactor].
	Transaction bool
	// Stream declares that the response is streamed: it goes out as it is
	// written, and leaves a tombstone.
	Stream bool
	// Production refuses a store that forgets with its process.
	Production bool

	// Disposition overrides what becomes of a run that ended with a status. Nil means
	// [DefaultDisposition].
	Disposition func(status int) Disposition
	// Fingerprint overrides what makes two requests the same. Nil means
	// [Fingerprint].
	Fingerprint func(r *http.Request, body []byte) string
	// KeepHeaders are names of response headers to store beyond the default
	// list, or [AllHeaders]. Set-Cookie and the like are never stored.
	KeepHeaders []string
	// ReplayHeader is the name of the replay marker. Default
	// Idempotent-Replayed.
	ReplayHeader string

	// Observe is called once for each request that carries a key or needs one.
	// It must be quick and safe for concurrent use.
	Observe func(Event)
	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger

	firstPoll time.Duration
}

// SingleTenant is a Scope for a service all of whose callers are one.
func SingleTenant() func(*http.Request) (string, error) {
	return func(*http.Request) (string, error) { return "all", nil }
}

// MinRetention is what R-6 demands.
const MinRetention = 24 * time.Hour

// complete fills in the defaults and returns all faults at once. A lease of less
// than 100 ms would end between two heartbeats of a busy machine.
func (o *Options) complete(store Store) error {
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("the store is nil"))
	}
	if o.Scope == nil {
		errs = append(errs, errors.New("option Scope is nil: return the caller's identity, or use SingleTenant()"))
	}
	o.Retention = cmp.Or(o.Retention, 48*time.Hour)
	if o.Retention < MinRetention {
		errs = append(errs, fmt.Errorf("retention %v is below 24h (R-6)", o.Retention))
	}
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.MaxRun = cmp.Or(o.MaxRun, 10*time.Minute)
	o.firstPoll, o.Poll = cmp.Or(o.Poll, firstPoll), cmp.Or(o.Poll, lastPoll)
	o.MaxWaiters = cmp.Or(o.MaxWaiters, 16)
	o.MaxRequest = cmp.Or(o.MaxRequest, 1<<20)
	o.MaxResponse = cmp.Or(o.MaxResponse, 1<<20)
	o.BodyIdle = cmp.Or(o.BodyIdle, 5*time.Second)
	o.StoreTimeout = cmp.Or(o.StoreTimeout, time.Second)
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"lease", o.Lease >= 100*time.Millisecond},
		{"poll", o.Poll > 0},
		{"max run", o.MaxRun > 0},
		{"max waiters", o.MaxWaiters > 0},
		{"max request", o.MaxRequest > 0},
		{"max response", o.MaxResponse > 0},
		{"body idle", o.BodyIdle > 0},
		{"store timeout", o.StoreTimeout > 0},
	} {
		if !c.ok {
			errs = append(errs, fmt.Errorf("%s is too small", c.name))
		}
	}
	if d, ok := store.(interface{ Durable() bool }); ok && o.Production && !d.Durable() {
		errs = append(errs, errors.New("option Production is set, but this store is in memory: use sqlstore or redisstore"))
	}
	if _, ok := store.(Transactor); o.Transaction && !ok {
		errs = append(errs, errors.New("option Transaction is set, but this store has none: use sqlstore with PostgreSQL"))
	}
	if o.Transaction && o.Stream {
		errs = append(errs, errors.New("options Transaction and Stream exclude each other: a streamed response is sent before the commit"))
	}
	if o.Transaction && o.Former != nil {
		errs = append(errs, errors.New("options Transaction and Former exclude each other"))
	}
	o.ReplayHeader = cmp.Or(o.ReplayHeader, HeaderReplayed)
	if o.Disposition == nil {
		o.Disposition = DefaultDisposition
	}
	if o.Fingerprint == nil {
		o.Fingerprint = Fingerprint
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Backlog == nil {
		o.Backlog = &Backlog{Store: store, Logger: o.Logger}
	}
	if o.Backlog.Store == nil {
		errs = append(errs, errors.New("Backlog.Store is nil"))
	}
	return errors.Join(errs...)
}
