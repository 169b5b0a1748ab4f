package store

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// Store keeps endpoints, messages, deliveries and attempts. Every write is
// durable when its method returns, but for claims that end with the machine
// that made them, and a canceled context ends the caller's wait, not the write.
// The store's own clock counts for what is due and for leases: times go in as
// durations. Implementations are safe for concurrent use by many processes and
// pass storetest.
type Store interface {
	MessageStore

	// PutEndpoint adds an endpoint or replaces one, counting its version up, and
	// returns it with the state that is stored. e.Version is what the write
	// expects: 0 any version or none, more than 0 that very one, [webhook.VersionNone]
	// none. Else it is [webhook.ErrVersion]. The comparison and the write are one step. One that
	// cannot be read is not replaced: [webhook.ErrUnreadable].
	PutEndpoint(ctx context.Context, e webhook.Endpoint) (webhook.Endpoint, error)
	// Endpoint returns one endpoint, and [webhook.ErrNotFound] when there is none. One that cannot
	// be read comes with [webhook.ErrUnreadable], as Endpoints lists it.
	Endpoint(ctx context.Context, id string) (webhook.Endpoint, error)
	// Endpoints lists all of them, in the order of their ids. Those that cannot be read
	// have an Error.
	Endpoints(ctx context.Context) ([]webhook.Endpoint, error)
	// EndpointChanges returns the endpoints that were put, enabled, disabled or
	// deleted since a mark that an earlier call returned, each as it is now. 0
	// returns all. No change is ever behind a mark without having been returned. An
	// endpoint that cannot be read keeps none of the others from being returned.
	EndpointChanges(ctx context.Context, since int64) (EndpointChanges, error)
	// DeleteEndpoint removes an endpoint, if its version is the given one; 0 is
	// any. Else it is [webhook.ErrVersion], or [webhook.ErrNotFound].
	DeleteEndpoint(ctx context.Context, id string, version int64) error
	// SetEndpointState changes what is known of an endpoint: its state, who has
	// disabled it and why, and the begin of its failures. What an operator has disabled
	// stays so for the others: a tenant that enables it gets [webhook.ErrDisabledByOperator],
	// and an endpoint of an application that is deleted and put again is still disabled.
	// [webhook.ByForbear] enables nothing: it notes the begin of failures, and leaves what is
	// disabled as it is. When it disables, [DisabledAlert] is raised in the same step: once,
	// however many dispatchers find the same.
	SetEndpointState(ctx context.Context, id string, s webhook.EndpointState, by webhook.Party, reason string, failingSince time.Time) error

	// PutHolds writes what a dispatcher has found out about endpoints, in one step. A
	// hold that goes on keeps the highest Looks. One that is not written again for
	// [HoldFor] is as if it were not there.
	PutHolds(ctx context.Context, owner string, list []HoldWrite) error
	// HoldChanges returns the holds that were written since a mark that an earlier call
	// returned, each as it is now, and the next mark. 0 returns all that go on. No change
	// is ever behind a mark without having been returned, unless it is an hour old.
	HoldChanges(ctx context.Context, since int64) (list []Hold, mark int64, err error)

	// PutApplication adds an application or replaces its configuration, as
	// PutEndpoint does an endpoint's. Whether it is suspended, and why, is replaced
	// with a Version of more than 0 alone: a configuration that is put blindly lifts no
	// suspension. PutEndpoint refuses one of an application that
	// does not exist with [webhook.ErrUnknownApplication], one beyond its limit with
	// [webhook.ErrTooManyEndpoints], and a change of the application with [webhook.ErrTaken].
	PutApplication(ctx context.Context, a webhook.Application) (webhook.Application, error)
	// Application returns one, or [webhook.ErrNotFound], and Applications up to limit of
	// them in the order of their ids, from the one behind after on. One that cannot be read
	// is as an endpoint is.
	Application(ctx context.Context, id string) (webhook.Application, error)
	Applications(ctx context.Context, after string, limit int) ([]webhook.Application, error)
	// DeleteApplication deletes one that has no endpoints; else it is [webhook.ErrInUse]. version
	// is as DeleteEndpoint's.
	DeleteApplication(ctx context.Context, id string, version int64) error

	// Accept adds messages, each with one delivery for each endpoint that does
	// not have it. ordered names the endpoints that keep the order of keys.
	// When one of the messages conflicts with another (see [webhook.ErrConflict]),
	// nothing of the call is added.
	Accept(ctx context.Context, msgs []webhook.Message, ordered map[string]bool) ([]webhook.Accepted, error)
	// Relay accepts up to limit rows of the outbox table, in the order of their
	// ids, each in the transaction that removes it. One process works at a time:
	// for the others there is nothing. A row that cannot be accepted becomes a
	// dead letter and does not delay the others. admit completes a message and names
	// those of its endpoints that keep the order of keys; with [webhook.ErrInvalid],
	// [webhook.ErrUnknownEndpoint] or [webhook.ErrUnknownApplication] it says that the row is at fault.
	// With [webhook.ErrSuspended] the row is put aside until its application is suspended no
	// more.
	Relay(ctx context.Context, limit int, admit func(*webhook.Message) (ordered map[string]bool, err error)) (RelayResult, error)

	// NextDues returns for each endpoint with waiting deliveries when the first is
	// due.
	NextDues(ctx context.Context) ([]NextDue, error)
	// WriteBackAndClaim writes back what became of claimed deliveries and then takes due
	// ones, the earliest first, for each lane up to its number: both in one
	// step, since each step costs.
	WriteBackAndClaim(ctx context.Context, t Step) (StepResult, error)
	// Reclaim returns deliveries whose lease ran out to the waiting ones, with
	// a record of the attempt that may have been made. So it does with leases that were
	// taken while the store's clock was ahead, and what waits since then is due after the
	// wait that it was written with. It may wait for a while before it does: a clock that
	// is behind for a moment looks the same.
	Reclaim(ctx context.Context, limit int) (int, error)
	// Overdue takes deliveries to one endpoint that began more than age ago, as
	// WriteBackAndClaim does, whether they are due or not.
	Overdue(ctx context.Context, owner string, lease, age time.Duration, lane Lane) ([]Delivery, error)
	// Requeue puts the message of a dead letter on its way again, with its id
	// and key and a fresh count of attempts. It is harmless to repeat: a message
	// that is on its way already is left alone, and one that arrived meanwhile
	// resolves the letter. [webhook.ErrConflict] says that the id stands for another
	// message by now.
	Requeue(ctx context.Context, l deadletter.Letter, ordered bool) error

	Deliveries(ctx context.Context, message string) ([]DeliveryInfo, error)
	// Heartbeat says that a dispatcher is at work, for as long as the lease, and returns
	// how many are, it included.
	Heartbeat(ctx context.Context, owner string, lease time.Duration) (live int, err error)
	// Leave ends a dispatcher's lease of Heartbeat.
	Leave(ctx context.Context, owner string) error

	// DropBodies looks at up to limit finished deliveries that are older than age
	// and were not looked at before, and returns their number. Where all deliveries
	// of a message have arrived that long ago it drops the body and the responses;
	// the identity and the history stay. Age is an hour or more, so that none
	// commits behind those that were looked at.
	DropBodies(ctx context.Context, age time.Duration, limit int) (int, error)
	// Sweep deletes up to limit finished deliveries older than age, with their
	// attempts and messages.
	Sweep(ctx context.Context, age time.Duration, limit int) (int, error)
}

// EndpointChanges is what has changed of the endpoints.
type EndpointChanges struct {
	// Mark is what to ask for next time.
	Mark      int64
	Endpoints []webhook.Endpoint
	Deleted   []string // ids; also of some that no caller has ever seen
	// Unreadable are those whose configuration, or whose application's, cannot be read.
	Unreadable []UnreadableEndpoint
}

// UnreadableEndpoint is an endpoint whose configuration cannot be read. It has its id, its
// application's, and its state; of its Tenant it has whether that is suspended.
type UnreadableEndpoint struct {
	webhook.Endpoint

	Err error // why: an [webhook.ErrUnreadable] that names the endpoint
}

// Waker is a [Store] that learns of work that other processes accept.
type Waker interface {
	// Wakes calls wake when there may be work, until ctx ends. Calls may be
	// missed: the dispatcher looks by itself as well.
	Wakes(ctx context.Context, wake func())
}

// Shrinker is a [Store] in a file, which does not become smaller by itself when much of
// it is swept.
type Shrinker interface {
	// Shrink gives a small part of the free space back, and reports whether there may
	// be more. A part is left for what is accepted next.
	Shrink(ctx context.Context) (more bool, err error)
}

// RelayResult is the result of a Relay.
type RelayResult struct {
	Rows     int // that left the outbox
	Accepted int // of these, duplicates apart
	// Dead are the letters of rows that could not be accepted, in brief.
	Dead []deadletter.Letter
	// Stuck are reasons why rows stay: those that others pass, since they can be neither
	// accepted nor refused, or that all of them have waited for long. It is not an
	// error: the others go on.
	Stuck []error
}
