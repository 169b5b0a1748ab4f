package sqlstore

import "sync"

// turns keeps the groups of a few writers large. While one of them is under way the
// next leaves when it has as many members, or when that one has ended: groups that
// left as soon as a writer is free would be small, and each costs the server and the
// process. Where writes come one by one, groups of one, none waits.
//
// The zero value is ready. It is safe for concurrent use.
type turns struct {
	mu       sync.Mutex
	underWay int
	size     int           // of the group that left last
	ended    chan struct{} // closed when a group ends; nil: no one waits
}

// leave reports whether a group of n may leave. Else it may when ended is closed, or
// when it is larger.
func (t *turns) leave(n int) (ok bool, ended <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.underWay == 0 || n >= t.size {
		t.underWay++
		t.size = n
		return true, nil
	}
	if t.ended == nil {
		t.ended = make(chan struct{})
	}
	return false, t.ended
}

// end ends a group that has left.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.underWay--
	if t.ended != nil {
		close(t.ended)
		t.ended = nil
	}
}
