package consume

import (
	"sync"
	"time"
)

// keys keeps the order of events of one key.
type keys struct {
	mu  sync.Mutex
	now map[string]*turn
}

// turn is whose turn it is at a key.
type turn struct {
	event   string
	running bool
	until   time.Time // when the event that failed comes again
}

const (
	recheck  = 100 * time.Millisecond
	maxTurns = 100_000
)

// enter reports whether an event may run; otherwise it may ask again at the
// time given. When too many keys wait, those that are new wait too.
func (k *keys) enter(key, event string, now time.Time) (at time.Time, free bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil {
		k.now = map[string]*turn{}
	}
	t := k.now[key]
	switch {
	case t == nil && len(k.now) >= maxTurns:
		return now.Add(soon), false
	case t == nil:
		k.now[key] = &turn{event: event, running: true}
		return now, true
	case t.running || t.event != event:
		if at = now.Add(recheck); at.Before(t.until) {
			at = t.until
		}
		return at, false
	}
	t.running = true
	return now, true
}

// leave gives the turn away when the event is done, and keeps it when the event
// comes again.
func (k *keys) leave(key string, d Decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.Action == Ack || d.Action == DeadLettered {
		delete(k.now, key)
		return
	}
	k.now[key].running, k.now[key].until = false, d.At
}
