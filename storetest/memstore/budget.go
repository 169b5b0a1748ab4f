package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/forbear-go/forbear/budget"
)

// Budget is a [budget.Store] in memory, for tests of what uses a fleet's
// budget. The zero value is empty and ready. It reads time.Now, so that a
// synctest bubble controls its clock. It is safe for concurrent use.
//
// It follows the same arithmetic as package redisstore's script, without the
// script's packing: a reader who wants to know what Sync does should
// start here.
type Budget struct {
	mu      sync.Mutex
	err     error
	budgets map[string]*sharedBudget
}

// sharedBudget is the budget of one key, as all instances see it.
// born: see Sync, which grants nothing while the budget is young.
type sharedBudget struct {
	born      time.Time
	slots     map[int64]*budget.Usage
	instances map[string]*sharer
}

// sharer is one instance: what it has reported so far, and what it holds under
// its lease.
type sharer struct {
	total budget.Usage
	hold  int64
	until time.Time // end of the lease
}

// Fail makes every report fail with err, until Fail(nil): a test uses it
// to show what a process does while the store is down.
func (s *Budget) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Clear loses all data, as a restart without persistence does.
func (s *Budget) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.budgets)
}

// A report is repeatable. It carries totals, so that one whose response
// was lost may be sent again and counts once.
// Sync implements budget.Store.
func (s *Budget) Sync(ctx context.Context, key string, window time.Duration, r budget.Report) (budget.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return budget.Reading{}, s.err
	}
	if err := ctx.Err(); err != nil {
		return budget.Reading{}, err
	}
	now := time.Now()
	b := s.budgets[key]
	if b == nil {
		b = &sharedBudget{born: now, slots: map[int64]*budget.Usage{}, instances: map[string]*sharer{}}
		if s.budgets == nil {
			s.budgets = map[string]*sharedBudget{}
		}
		s.budgets[key] = b
	}
	slot := now.UnixNano() / int64(window/slots)
	b.expire(now, slot, window)
	known, ok := b.instances[r.Instance]
	// An instance that is not known reports all of its window: its growth is
	// more than any window has.
	if !ok {
		known = &sharer{total: budget.Usage{Initial: r.Total.Initial - 1<<62, Retries: r.Total.Retries - 1<<62}}
	}
	b.book(slot, r, budget.Usage{Initial: r.Total.Initial - known.total.Initial, Retries: r.Total.Retries - known.total.Retries})
	// Its old hold is given back first, or it would stand in its own way.
	known.total, known.hold, known.until = r.Total, 0, now.Add(r.Lease)
	b.instances[r.Instance] = known
	if r.Leave {
		delete(b.instances, r.Instance)
	}
	f := b.sums(now, slot)
	// A hold is kept under any limit; more is granted from what is left, once
	// the budget is older than a lease, so that all have reported.
	f.Granted = r.Hold
	if room := r.Limit - f.Retries - f.Held - r.Hold; now.Sub(b.born) >= r.Lease && room > 0 {
		f.Granted += max(0, min(r.Want-r.Hold, room))
	}
	known.hold = f.Granted
	f.Held += f.Granted
	return f, nil
}

// slots is how many parts a window has. It bounds both the memory of a key
// and the error at the window's edge, which is one slot: a second of the
// default 30 s.
const slots = 30

// expire drops old slots, counts what the lost instances held as spent, and
// forgets instances that have been away for two windows. Until then a
// returning instance is known, and its totals count only by their growth.
func (b *sharedBudget) expire(now time.Time, slot int64, window time.Duration) {
	for n := range b.slots {
		if slot-n > slots {
			delete(b.slots, n)
		}
	}
	for id, i := range b.instances {
		if i.until.After(now) {
			continue
		}
		// It may have spent all that it held: that counts as spent.
		b.slot(slot).Retries += i.hold
		i.hold = 0
		if now.Sub(i.until) > 2*window {
			delete(b.instances, id)
		}
	}
}

// slot returns the slot of that number, creating it if need be. Reading a
// sum never creates one.
func (b *sharedBudget) slot(n int64) *budget.Usage {
	if b.slots[n] == nil {
		b.slots[n] = &budget.Usage{}
	}
	return b.slots[n]
}

// book adds an instance's growth to the slots in which it happened. The
// growth bounds what is added: a report repeats the whole recent window, and
// only the part that is new may count.
func (b *sharedBudget) book(slot int64, r budget.Report, grown budget.Usage) {
	for age, u := range r.Recent {
		initial := min(u.Initial, max(grown.Initial, 0))
		retries := min(u.Retries, max(grown.Retries, 0))
		grown.Initial -= initial
		grown.Retries -= retries
		if initial+retries > 0 {
			to := b.slot(slot - int64(age))
			to.Initial += initial
			to.Retries += retries
		}
	}
	// A refund: retries that were reported and not made. The newest give way
	// first.
	for age := int64(0); age <= slots && grown.Retries < 0; age++ {
		if from := b.slots[slot-age]; from != nil {
			back := min(from.Retries, -grown.Retries)
			from.Retries -= back
			grown.Retries += back
		}
	}
}

// sums adds up the window. Retries count one slot longer than requests do:
// when the edge falls inside a slot, the error is then on the side of fewer
// retries.
func (b *sharedBudget) sums(now time.Time, slot int64) (f budget.Reading) {
	for n, u := range b.slots {
		if slot-n < slots {
			f.Initial += u.Initial
		}
		f.Retries += u.Retries
	}
	for _, i := range b.instances {
		f.Held += i.hold
		if i.until.After(now) {
			f.Instances++
		}
	}
	return f
}
