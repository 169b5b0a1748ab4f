package batch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forbear-go/forbear/reason"
)

// schedule says which item has the next attempt. It belongs to one goroutine;
// the attempts run in goroutines of their own, and the iterator in the caller's.
//
// A retry whose backoff is over comes first, then a postponed one, then a new item. An
// item that waits takes no worker.
type schedule[T any] struct {
	*run[T]
	due  waiting[T]      // a retry is granted: until its backoff is over
	late waiting[T]      // a retry was postponed: until the item's total is over
	held []*item[T]      // fetched and not begun
	busy map[string]bool // ids of the items that are not over

	running int  // attempts under way
	probing int  // of these, begun while the breaker was not closed
	proven  bool // the latest of them succeeded
	more    bool // items to come

	askAt time.Time // a retry was refused: none is asked for before
	extra bool      // for once an item more than may wait: see wanted
	since time.Time // of the first refusal of the breaker after a success
}

// work works on the items of the feeder until all are over.
func (s *schedule[T]) work(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := s.feeding.Done()
	for {
		if s.feeding.Err() != nil {
			s.leave(ctx)
		}
		again, wanted := s.fill(ctx)
		if !s.more && s.running+s.waiting() == 0 {
			return
		}
		var tick <-chan time.Time
		if !again.IsZero() {
			timer.Reset(time.Until(again))
			tick = timer.C
		}
		var fresh <-chan *item[T]
		if wanted || s.more && s.feeding.Err() != nil { // which ends it
			fresh = s.fresh
		}
		select {
		case it := <-s.back:
			s.returned(it, time.Now())
		case it, ok := <-fresh:
			if s.extra = false; ok {
				s.fetched(it)
			} else {
				s.more = false
			}
		case <-tick:
		case <-stopped:
			stopped = nil
		}
	}
}

// waiting is how many items are begun or fetched and wait: it is what
// Options.Waiting bounds.
func (s *schedule[T]) waiting() int { return len(s.due) + len(s.late) + len(s.held) }

// fill begins all attempts that can be begun now. It returns when to look
// again, if time alone can change that, and whether a new item is wanted.
func (s *schedule[T]) fill(ctx context.Context) (again time.Time, wanted bool) {
	for s.running < s.Concurrency {
		now := time.Now()
		shut := s.shut(now)
		it := s.next(now, shut)
		if it == nil {
			return s.again(now, shut), s.wanted(shut)
		}
		if it.probe = !s.closed(); it.probe {
			s.probing++
		}
		s.running++
		go func() {
			defer func() { s.back <- it }() // also when a function of the caller's ends the goroutine
			returned := false
			defer func() {
				if !returned {
					s.run.leave(ctx, it)
				}
			}()
			it.over = s.step(ctx, it)
			returned = true
		}()
	}
	return time.Time{}, false
}

// next returns the item that has the next attempt, or whose time is over.
func (s *schedule[T]) next(now time.Time, shut time.Duration) *item[T] {
	switch asking := !s.askAt.After(now); {
	case shut == untilProven:
		return nil
	case s.due.over(now): // postponed when the breaker is open
		return s.due.take()
	case s.late.over(now):
		return s.late.take()
	case shut > 0:
		return nil
	case len(s.late) > 0 && asking:
		return s.late.take()
	case len(s.held) > 0 && (asking || s.held[0].last.Reason == reason.None):
		it := s.held[0]
		s.held = s.held[1:]
		return it
	}
	return nil
}

// again returns when next may find what it has not found now.
func (s *schedule[T]) again(now time.Time, shut time.Duration) (at time.Time) {
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if shut == untilProven {
		return at
	}
	for _, w := range []waiting[T]{s.due, s.late} {
		if len(w) > 0 {
			earlier(w[0].until)
		}
	}
	switch {
	case shut > 0:
		earlier(now.Add(shut))
	case len(s.late)+len(s.held) > 0:
		earlier(s.askAt)
	}
	return at
}

// wanted reports whether a new item may be begun. When as many wait as may, and
// a retry was refused, one more may: were all to wait for the budget, no success
// would ever earn them a retry.
func (s *schedule[T]) wanted(shut time.Duration) bool {
	return s.more && len(s.held) == 0 && shut == 0 && s.feeding.Err() == nil &&
		(s.waiting() < s.Waiting || s.extra)
}

// fetched takes an item of the feeder.
func (s *schedule[T]) fetched(it *item[T]) {
	if s.busy[it.id] {
		s.tally.count(func(r *Report) { r.Skipped++ })
		return
	}
	if s.ID != nil {
		s.busy[it.id] = true
	}
	s.held = append(s.held, it)
}

// returned takes an item back from its attempt.
func (s *schedule[T]) returned(it *item[T], now time.Time) {
	s.running--
	if it.probe {
		s.probing--
		s.proven = it.last.Reason == reason.Success
	}
	switch {
	case it.over:
		delete(s.busy, it.id)
		if it.last.Reason == reason.Success {
			s.askAt, s.since = time.Time{}, time.Time{}
		}
		return
	case it.last.Retry:
		s.due.add(it, now.Add(it.last.Wait))
		return
	case it.begun():
		s.late.add(it, it.end)
	default:
		s.held = append(s.held, it)
	}
	// A refused retry makes all of them wait for up to a second, at random:
	// asking for each would keep the budget busy, and a fixed pause would
	// make the processes of a fleet ask together.
	if !s.askAt.After(now) {
		s.askAt, s.extra = now.Add(rand.N(time.Second)), true
	}
}

// leave leaves all that waits to a later run: this one has been stopped.
func (s *schedule[T]) leave(ctx context.Context) {
	for _, it := range slices.Concat(s.due, s.late, s.held) {
		s.postpone(ctx, it)
	}
	s.due, s.late, s.held = nil, nil, nil
}
