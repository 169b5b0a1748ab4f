package consume

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// keys keeps the order of events of one key: each key has the line of those
// that have come and are not done.
type keys struct {
	mu    sync.Mutex
	lines map[string][]*place
}

// place is an event's in the line. The first of the line has the turn.
type place struct {
	event   idempotency.ID
	running bool
	until   time.Time // when it comes again
}

const (
	recheck  = 100 * time.Millisecond
	overdue  = time.Minute
	maxLines = 100_000
	maxLine  = 10_000
)

// turn reports whether it is an event's turn; otherwise d says what becomes of it. An
// event that does not come back for its turn has been taken up by another process,
// when that has the key now: its record shows when it is done. One that is new looks
// at once, and others when it is overdue. After the total duration no event waits for
// it any more.
func (c *Consumer) turn(ctx context.Context, e *Event) (d Decision, free bool) {
	id, fresh := c.id(e), false
	for {
		now := time.Now()
		at, added, first := c.keys.enter(e.Key, id, now)
		fresh = fresh || added
		d = Decision{Action: RetryAt, At: at, Reason: "order", Duplicate: true}
		switch {
		case first == nil:
			return d, true
		case added && !e.Redrive && c.over(ctx, id):
			// The broker may know, and not bring it back for its turn.
			c.keys.remove(e.Key, id)
			return c.claim(ctx, e, false), false
		case first.running || !fresh && now.Before(first.until.Add(overdue)):
			return d, false
		case !c.over(ctx, first.event) && now.Before(first.until.Add(c.Retryer.Policy().Total)):
			return d, false
		}
		c.keys.remove(e.Key, first.event)
	}
}

// over reports whether an event is done or a dead letter.
func (c *Consumer) over(ctx context.Context, event idempotency.ID) bool {
	rec, err := c.Store.Get(ctx, event)
	return err == nil && (rec.State == idempotency.Completed || rec.Note == idempotency.DeadLetterNote)
}

// enter takes a place in the line of a key, unless the event has one. When it is
// not its turn, it returns the first of the line as it is. When too many wait,
// those that are new wait outside.
func (k *keys) enter(key string, event idempotency.ID, now time.Time) (at time.Time, added bool, first *place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lines == nil {
		k.lines = map[string][]*place{}
	}
	line := k.lines[key]
	i := slices.IndexFunc(line, func(p *place) bool { return p.event == event })
	if added = i < 0; added {
		if len(line) == 0 && len(k.lines) >= maxLines || len(line) >= maxLine {
			return now.Add(soon()), false, &place{running: true}
		}
		line = append(line, &place{event: event})
		i = len(line) - 1
		k.lines[key] = line
	}
	if i == 0 && !line[0].running {
		line[0].running = true
		return now, added, nil
	}
	copied := *line[0]
	if at = now.Add(recheck); at.Before(copied.until) {
		at = copied.until
	}
	if i > 0 {
		line[i].until = at
	}
	return at, added, &copied
}

// remove takes an event out of the line that is over and does not run here.
func (k *keys) remove(key string, event idempotency.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := k.lines[key]
	if i := slices.IndexFunc(line, func(p *place) bool { return p.event == event && !p.running }); i >= 0 {
		k.shorten(key, i)
	}
}

// shorten takes a place out of the line of a key.
func (k *keys) shorten(key string, i int) {
	if k.lines[key] = slices.Delete(k.lines[key], i, i+1); len(k.lines[key]) == 0 {
		delete(k.lines, key)
	}
}

// leave gives the turn away when the event is done, and keeps it when the event
// comes again.
func (k *keys) leave(key string, d Decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.Acknowledge() {
		k.shorten(key, 0)
		return
	}
	first := k.lines[key][0]
	first.running, first.until = false, d.At
}
