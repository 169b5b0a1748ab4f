package memstore

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Store is a store.Store and a queue.Store in memory: one, since a
// delivery that dies and its letter are one write. It goes by time.Now, so that
// a synctest bubble may turn its clock, and is safe for concurrent use. The zero
// value is empty and ready.
type Store struct {
	operations

	mu        sync.Mutex
	seq       int64 // the last delivery's id
	endpoints map[string]*endpoint
	changes   int64 // the latest change of an endpoint

	holds       map[[2]string]*hold // by endpoint and kind
	holdChanges int64               // the latest change of a hold

	applications map[string]webhook.Application

	all   map[int64]*delivery
	of    map[string][]*delivery // by the message's id
	lanes map[string]*waiting    // by endpoint
	// keys has the unfinished deliveries of a key in their order: the first is
	// on its way, and the others are held.
	keys map[laneKey][]*delivery

	dispatchers map[string]time.Time // by owner: until when it counts

	letters []*deadletter.Letter
	jobs    []*job
	alerts  []*alert
	audits  []queue.Entry
}

// operations are what only operators do: they are stores' own to test, and not here. A call
// panics.
type operations interface {
	Applications(ctx context.Context, after string, limit int) ([]webhook.Application, error)
	DeleteApplication(ctx context.Context, id string, version int64) error
	SendAgain(ctx context.Context, numbers []int64, redrives int, by string) ([]store.MessageResult, error)
	Contents(ctx context.Context, message string, endpoints []string, limit int) ([]store.MessageContent, error)
	Erase(ctx context.Context, message string, endpoints []string, by string) (int, error)
	Requeue(ctx context.Context, l deadletter.Letter, ordered bool) error
	Causes(ctx context.Context, limit int) ([]queue.CauseStat, error)
	Discard(ctx context.Context, id, by, why string) error
	DiscardMany(ctx context.Context, f queue.Filter, by, why string) (int, error)
}

// laneKey names a queue of messages that keep their order: a key is ordered
// for each endpoint by itself, so that a failing endpoint delays no other.
type laneKey struct{ endpoint, key string }

// The states of a delivery, as webhook.Info shows them. A held delivery is
// due only when the one before it in its key finishes.
const (
	stateWaiting  = store.StateWaiting
	stateSending  = store.StateSending
	stateHeld     = store.StateHeld
	stateDone     = store.StateDelivered
	stateDead     = store.StateDead
	stateCanceled = store.StateCanceled
)

// delivery is one message to one endpoint, with what a database keeps beside
// it: who holds it and until when, and its history. finished is zero while
// it is open.
type delivery struct {
	store.Delivery

	state    string
	owner    string
	lease    time.Time
	finished time.Time
	dropped  bool // the message has a digest in the place of its body
	history  []deadletter.Attempt
}

// waiting is the deliveries of one endpoint as a heap, by when they are due.
// One that no longer waits stays in and is passed over by head: finding and
// removing it would cost more than meeting it once at the top.
type waiting []*delivery

func (w waiting) Len() int { return len(w) }

func (w waiting) Less(i, k int) bool { return w[i].Due.Before(w[k].Due) }

func (w waiting) Swap(i, k int) { w[i], w[k] = w[k], w[i] }

func (w *waiting) Push(x any) { *w = append(*w, x.(*delivery)) }

func (w *waiting) Pop() any {
	last := len(*w) - 1
	d := (*w)[last]
	*w = (*w)[:last]
	return d
}

// head returns the first that waits, or nil.
func (w *waiting) head() *delivery {
	for w.Len() > 0 {
		if d := (*w)[0]; d.state == stateWaiting {
			return d
		}
		heap.Pop(w)
	}
	return nil
}

// oldest returns the first deliveries that are chosen, in the order of their creation.
// Ids count up, and a map has no order of its own.
func (m *Store) oldest(limit int, chosen func(*delivery) bool) (list []*delivery) {
	for _, d := range m.all {
		if chosen(d) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *delivery) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(len(list), limit)]
}

// find returns the first of a list that is what is looked for, or nil. It looks at
// every one, which is fine for the hundreds that a test has.
func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}
