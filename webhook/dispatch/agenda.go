package dispatch

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// agenda says which receivers the main loop has to ask what they want: those to which
// something has happened, and those whose time has come. One that is idle is not in it, so
// that a turn of the loop costs what the busy ones cost. It names them by their endpoints.
// It is safe for concurrent use.
type agenda struct {
	mu    sync.Mutex
	asked map[string]bool // at the next turn
}

// ask adds endpoints for the next turn.
func (a *agenda) ask(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]bool{}
	}
	for _, id := range ids {
		a.asked[id] = true
	}
}

// take takes the endpoints that are to be asked, in random order, so that none is first
// each time and none starves when there is more than one claim may take.
func (a *agenda) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer clear(a.asked)
	return slices.Collect(maps.Keys(a.asked)) // a map has no order
}

// askAt makes the main loop ask the receiver at a time, in place of the one it had.
func (r *receiver) askAt(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.alarm == nil {
		r.alarm = time.AfterFunc(time.Until(t), func() { r.d.ask(r.id) })
		return
	}
	r.alarm.Reset(time.Until(t))
}
