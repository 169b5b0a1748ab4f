package dispatch

import (
	"container/heap"
	"maps"
	"sync"
	"time"
)

// agenda says which receivers the main loop has to ask what they want: those to which
// something has happened, and those whose time has come. One that is idle is
// not in it, so that a turn of the loop costs what the busy ones cost. It names
// them by their endpoints. It is safe for concurrent use.
type agenda struct {
	mu    sync.Mutex
	asked map[string]bool // at the next turn
	later timetable
}

// ask adds an endpoint for the next turn.
func (a *agenda) ask(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]bool{}
	}
	a.asked[id] = true
}

// askAt adds an endpoint for a time, in place of the one it had.
func (a *agenda) askAt(id string, t time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.later.set(id, t)
}

// take takes the endpoints that are to be asked at the given time.
func (a *agenda) take(now time.Time) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	if a.asked = nil; asked == nil {
		asked = map[string]bool{}
	}
	for len(a.later.list) > 0 && !a.later.list[0].at.After(now) {
		asked[heap.Pop(&a.later).(*appointment).id] = true
	}
	return asked
}

// putBack returns endpoints that were taken and not asked.
func (a *agenda) putBack(ids map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(ids, a.asked)
	a.asked = ids
}

// next returns when the next one is to be asked; zero: when something happens.
func (a *agenda) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.later.list) == 0 {
		return time.Time{}
	}
	return a.later.list[0].at
}

// timetable is a heap of appointments by their times, at most one for each
// endpoint.
type timetable struct {
	list []*appointment
	of   map[string]*appointment
}

// appointment is when a receiver is to be asked.
type appointment struct {
	id    string
	at    time.Time
	place int // in the heap
}

// set makes the appointment of an endpoint.
func (t *timetable) set(id string, at time.Time) {
	if p := t.of[id]; p != nil {
		p.at = at
		heap.Fix(t, p.place)
		return
	}
	if t.of == nil {
		t.of = map[string]*appointment{}
	}
	p := &appointment{id: id, at: at}
	t.of[id] = p
	heap.Push(t, p)
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (t *timetable) Len() int { return len(t.list) }

func (t *timetable) Less(i, k int) bool { return t.list[i].at.Before(t.list[k].at) }

func (t *timetable) Swap(i, k int) {
	t.list[i], t.list[k] = t.list[k], t.list[i]
	t.list[i].place, t.list[k].place = i, k
}

func (t *timetable) Push(x any) {
	p := x.(*appointment)
	p.place = len(t.list)
	t.list = append(t.list, p)
}

func (t *timetable) Pop() any {
	last := len(t.list) - 1
	p := t.list[last]
	t.list[last] = nil
	t.list = t.list[:last]
	delete(t.of, p.id)
	return p
}
