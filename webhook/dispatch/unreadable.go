package dispatch

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A delivery whose message cannot be read, since this process lacks its encryption key,
// is neither lost nor dead: it waits until a process with the key looks at it.
const (
	// unreadableFor is how long it is put off, at least.
	unreadableFor = time.Minute
	// unreadableGap is between two that are due again: however many there are, to look
	// at them leaves the store to what can be sent.
	unreadableGap = 2 * time.Millisecond
	// unreadableAgain is how often the log and an alert say so of an endpoint.
	unreadableAgain = time.Hour
	// overdueUnreadable bounds those that one look for overdue deliveries meets.
	overdueUnreadable = 100_000
)

// unreadable spreads what cannot be read, and remembers of which endpoints it was said.
// The zero value has met none. It is safe for concurrent use.
type unreadable struct {
	mu   sync.Mutex
	last time.Time            // when the latest one is due again
	said map[string]time.Time // by endpoint
}

// after returns for how long a delivery is put off.
func (u *unreadable) after(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last = u.last.Add(unreadableGap); u.last.Before(now.Add(unreadableFor)) {
		u.last = now.Add(unreadableFor)
	}
	return u.last.Sub(now)
}

// say reports whether to say that messages to an endpoint cannot be read.
func (u *unreadable) say(endpoint string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.said, func(_ string, t time.Time) bool { return now.Sub(t) >= unreadableAgain })
	if _, said := u.said[endpoint]; said {
		return false
	}
	if u.said == nil {
		u.said = map[string]time.Time{}
	}
	u.said[endpoint] = now
	return true
}

// putOff gives a delivery back that cannot be read. It has used neither a slot nor the
// endpoint's rate.
func (d *Dispatcher) putOff(dl *store.Delivery) {
	now := time.Now()
	if d.unreadable.say(dl.Endpoint, now) {
		d.log.Error("message cannot be read, and waits", slog.String("endpoint", dl.Endpoint), slog.String("message", dl.Message.ID), slog.String("error", dl.Unreadable.Error()))
		d.raise(deadletter.Alert{
			Queue: webhook.QueueOf(dl.Endpoint), Reason: "unreadable",
			Detail: "endpoint " + dl.Endpoint + ": message " + dl.Message.ID + " cannot be read, and waits, perhaps with others: " + dl.Unreadable.Error(),
		})
	}
	d.outcomes <- store.WriteBack{ID: dl.ID, Fence: dl.Fence, Endpoint: dl.Endpoint, OrderKey: dl.OrderKey, Kind: store.Released, Unreadable: true, After: d.unreadable.after(now)}
}
