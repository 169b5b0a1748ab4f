package dispatch

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A delivery whose message cannot be read, since this process lacks its encryption key,
// is neither lost nor dead: it waits until a process with the key looks at it.
const (
	// unreadableFor is how long it is postponed, at least.
	unreadableFor = time.Minute
	// unreadableGap is between two that are due again: however many there are, to look
	// at them leaves the store to what can be sent.
	unreadableGap = 2 * time.Millisecond
	// unreadableAgain is how often the log and an alert say so of an endpoint.
	unreadableAgain = time.Hour
	// overdueUnreadable bounds those that one look for overdue deliveries meets.
	overdueUnreadable = 100_000
)

// unreadable spreads what cannot be read, and remembers of which endpoints that was said:
// an endpoint that is deleted has no receiver that could. The zero value has met none. It
// is safe for concurrent use.
type unreadable struct {
	last atomic.Pointer[time.Time] // when the latest one is due again
	said sync.Map                  // of time.Time, by endpoint
}

// after returns for how long a delivery is postponed.
func (u *unreadable) after(now time.Time) time.Duration {
	for {
		last, next := u.last.Load(), now.Add(unreadableFor)
		if last != nil && last.Add(unreadableGap).After(next) {
			next = last.Add(unreadableGap)
		}
		if u.last.CompareAndSwap(last, &next) {
			return next.Sub(now)
		}
	}
}

// say reports whether to say that messages to an endpoint cannot be read.
func (u *unreadable) say(endpoint string, now time.Time) bool {
	at, said := u.said.LoadOrStore(endpoint, now)
	if said {
		return now.Sub(at.(time.Time)) >= unreadableAgain && u.said.CompareAndSwap(endpoint, at, now)
	}
	u.said.Range(func(other, at any) bool {
		if now.Sub(at.(time.Time)) >= unreadableAgain {
			u.said.CompareAndDelete(other, at)
		}
		return true
	})
	return true
}

// postpone gives a delivery back that cannot be read. It has used neither a slot nor the
// endpoint's rate.
func (r *receiver) postpone(dl *store.Delivery) {
	d, now := r.d, time.Now()
	if d.unreadable.say(dl.Endpoint, now) {
		d.log.Error("message cannot be read, and waits", slog.String("endpoint", dl.Endpoint), slog.String("message", dl.Message.ID), slog.String("error", dl.Unreadable.Error()))
		d.raise(queue.Alert{
			Queue: webhook.QueueOf(dl.Endpoint), Reason: "unreadable",
			Detail: "endpoint " + dl.Endpoint + ": message " + dl.Message.ID + " cannot be read, and waits, perhaps with others: " + dl.Unreadable.Error(),
		})
	}
	d.outcomes <- store.WriteBack{ID: dl.ID, Fence: dl.Fence, Endpoint: dl.Endpoint, OrderKey: dl.OrderKey, Kind: store.Released, Unreadable: true, After: d.unreadable.after(now)}
}
