package pace

import (
	"container/list"
	"time"
)

// Waiter is a call that waits for its turn. It belongs to one goroutine.
type Waiter struct {
	p             *Pacer
	since, latest time.Duration
	place         *list.Element // in the line
	moved         chan struct{}
}

// line is the calls that wait, each a *Waiter, the oldest first. It is not safe for
// concurrent use.
type line struct{ list.List }

// head returns the call whose turn is next, or nil.
func (l *line) head() *Waiter { return waiterAt(l.Front()) }

// waiterAt returns the call at a place, or nil without one.
func waiterAt(place *list.Element) *Waiter {
	if place == nil {
		return nil
	}
	return place.Value.(*Waiter)
}

// ahead returns how many of the line began to wait before a time, and the last of
// them. A retry, which has waited out its backoff elsewhere, comes in near the head.
func (l *line) ahead(since time.Duration) (n int, last *list.Element) {
	if last = l.Back(); last == nil || waiterAt(last).since <= since {
		return l.Len(), last
	}
	last = nil
	for e := l.Front(); e != nil && waiterAt(e).since <= since; e = e.Next() {
		n, last = n+1, e
	}
	return n, last
}

// insert puts w behind another, or at the head.
func (l *line) insert(w *Waiter, behind *list.Element) {
	if behind == nil {
		w.place = l.PushFront(w)
	} else {
		w.place = l.InsertAfter(w, behind)
	}
}

// wake lets the head ask again: it has become the head, or turns come sooner. The
// others wait for that without a timer of their own.
func (l *line) wake() {
	w := l.head()
	if w == nil {
		return
	}
	select {
	case w.moved <- struct{}{}:
	default: // it has been woken and has not asked yet
	}
}
