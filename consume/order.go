package consume

import (
	"context"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// keys keeps the order of events of one key.
type keys struct {
	mu  sync.Mutex
	now map[string]*turn
}

// turn is whose turn it is at a key.
type turn struct {
	event   idempotency.ID
	running bool
	until   time.Time // when the event that failed comes again
}

const (
	recheck  = 100 * time.Millisecond
	overdue  = time.Minute
	maxTurns = 100_000
)

// turn reports whether an event may run; otherwise it may ask again at the
// time given. An event that does not come back for its turn has been taken up
// by another process, when that has the key now; its record tells when it is
// done.
func (c *Consumer) turn(ctx context.Context, e *Event) (at time.Time, free bool) {
	id, now := c.id(e), time.Now()
	at, free, absent := c.keys.enter(e.Key, id, now)
	if absent == (idempotency.ID{}) {
		return at, free
	}
	rec, err := c.Store.Get(ctx, absent)
	if err != nil || rec.State != idempotency.Completed && rec.Note != buried {
		return at, false
	}
	c.keys.drop(e.Key, absent)
	at, free, _ = c.keys.enter(e.Key, id, now)
	return at, free
}

// enter takes the turn of a key if it is free. absent is the event that has it
// and is overdue. When too many keys wait, those that are new wait too.
func (k *keys) enter(key string, event idempotency.ID, now time.Time) (at time.Time, free bool, absent idempotency.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil {
		k.now = map[string]*turn{}
	}
	t := k.now[key]
	switch {
	case t == nil && len(k.now) >= maxTurns:
		return now.Add(soon()), false, absent
	case t == nil:
		k.now[key] = &turn{event: event, running: true}
		return now, true, absent
	case t.running || t.event != event:
		if at = now.Add(recheck); at.Before(t.until) {
			at = t.until
		}
		if !t.running && now.After(t.until.Add(overdue)) {
			absent = t.event
		}
		return at, false, absent
	}
	t.running = true
	return now, true, absent
}

// drop takes the turn away from an event that is done elsewhere.
func (k *keys) drop(key string, event idempotency.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.now[key]; t != nil && t.event == event && !t.running {
		delete(k.now, key)
	}
}

// leave gives the turn away when the event is done, and keeps it when the event
// comes again.
func (k *keys) leave(key string, d Decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.Acknowledge() {
		delete(k.now, key)
		return
	}
	k.now[key].running, k.now[key].until = false, d.At
}
