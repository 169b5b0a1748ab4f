package dispatch

import (
	"log/slog"
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

// unreadable spreads what cannot be read. The zero value has met none. It is safe for
// concurrent use.
type unreadable struct {
	last atomic.Pointer[time.Time] // when the latest one is due again
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

// seldom reports whether to say something that was not said for so long, of an endpoint
// perhaps that is deleted and has no receiver.
func (d *Dispatcher) seldom(what string, every time.Duration) bool {
	return d.limits.Take(what, 1/every.Seconds(), 1, time.Now()) == 0
}

// postpone gives a delivery back that cannot be read. It has used neither a slot nor the
// endpoint's rate.
func (r *receiver) postpone(dl *store.Delivery) {
	d, now := r.d, time.Now()
	if d.seldom("unreadable "+dl.Endpoint, unreadableAgain) {
		d.log.Error("message cannot be read and stays queued", slog.String("endpoint", dl.Endpoint), slog.String("message", dl.Message.ID), slog.String("error", dl.Unreadable.Error()))
		d.raise(queue.Alert{
			Queue: webhook.QueueOf(dl.Endpoint), Reason: "unreadable",
			Detail: "endpoint " + dl.Endpoint + ": message " + dl.Message.ID + " cannot be read and stays queued, perhaps with others: " + dl.Unreadable.Error(),
		})
	}
	d.outcomes <- store.WriteBack{ID: dl.ID, Fence: dl.Fence, Endpoint: dl.Endpoint, OrderKey: dl.OrderKey, Kind: store.Released, Unreadable: true, After: d.unreadable.after(now)}
}
