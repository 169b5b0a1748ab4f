package pace

import "time"

// Waiter is a call that waits for its turn. It belongs to one goroutine.
type Waiter struct {
	p             *Pacer
	since, latest time.Duration
	before, after *Waiter
	moved         chan struct{}
}

// line is the calls that wait, the oldest first. It is not safe for concurrent use.
type line struct {
	head, tail *Waiter
	length     int
}

// ahead returns how many of the line began to wait before a time, and the last of
// them. A retry, which has waited out its backoff elsewhere, comes in near the head.
func (l *line) ahead(since time.Duration) (n int, last *Waiter) {
	n = l.length
	if l.head == nil || l.tail.since <= since {
		return n, l.tail
	}
	n = 0
	for w := l.head; w != nil && w.since <= since; w = w.after {
		n, last = n+1, w
	}
	return n, last
}

// insert puts w behind another, or at the head.
func (l *line) insert(w, behind *Waiter) {
	w.before = behind
	if behind == nil {
		w.after, l.head = l.head, w
	} else {
		w.after, behind.after = behind.after, w
	}
	if w.after == nil {
		l.tail = w
	} else {
		w.after.before = w
	}
	l.length++
}

// remove takes w out of the line.
func (l *line) remove(w *Waiter) {
	if w.before == nil {
		l.head = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		l.tail = w.before
	} else {
		w.after.before = w.before
	}
	w.before, w.after = nil, nil
	l.length--
}

// wake lets the head ask again: it has become the head, or turns come sooner. The
// others wait for that without a timer of their own.
func (l *line) wake() {
	if l.head == nil {
		return
	}
	select {
	case l.head.moved <- struct{}{}:
	default: // it has been woken and has not asked yet
	}
}
