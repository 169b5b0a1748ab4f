// Package window counts events over a rolling span of time, in slots. It never
// reads a clock: the time is an argument, and only differences matter.
package window

import "time"

// Slots is the number of slots that one window is cut into: the count may be
// off by the events of one slot, 1/30 of the window.
const Slots = 30

// ring is the smallest power of two that holds a window and its edge.
const ring = 32

// epoch anchors the slots. Differences of times that carry a monotonic reading
// are immune to steps of the wall clock.
var epoch = time.Now()

// Epoch returns the start of slot 0, for simulations: times counted from here
// fall into the same slots in every run.
func Epoch() time.Time { return epoch }

// slotOf returns the number of the slot that t falls into.
func slotOf(t time.Time, width time.Duration) uint32 { return slotAt(t.Sub(epoch), width) }

// slotAt is slotOf for a time that is counted from the epoch.
func slotAt(d, width time.Duration) uint32 {
	if d < 0 {
		d -= width - 1 // round towards the past
	}
	return uint32(d / width)
}

// age returns how many slots lie between an older slot and now; the numbering
// wraps around.
func age(now, slot uint32) uint32 { return now - slot }

// Width returns the width of a slot for a window of the given span.
func Width(span time.Duration) time.Duration { return max(span/Slots, 1) }

// Exact counts in slots and is not safe for concurrent use. Events of the slot
// at the window's edge still count: the sum is never too small.
type Exact struct {
	width time.Duration
	cells [ring]struct {
		slot uint32
		n    int64
	}
}

// NewExact returns an empty counter over span.
func NewExact(span time.Duration) *Exact { return &Exact{width: Width(span)} }

// Add counts n events at the given time.
func (w *Exact) Add(now time.Time, n int64) {
	slot := slotOf(now, w.width)
	c := &w.cells[slot%ring]
	if c.slot != slot {
		c.slot, c.n = slot, 0
	}
	c.n += n
}

// Remove takes back one event, from the newest slot that holds one.
func (w *Exact) Remove(now time.Time) {
	slot := slotOf(now, w.width)
	for back := range uint32(Slots + 1) {
		if c := &w.cells[(slot-back)%ring]; c.slot == slot-back && c.n > 0 {
			c.n--
			return
		}
	}
}

// Sum returns the number of events in the window that ends now, and of those that
// were counted for later: of two callers the one with the newer clock may come first,
// and what it took is taken.
func (w *Exact) Sum(now time.Time) int64 {
	slot := slotOf(now, w.width)
	var sum int64
	for i := range w.cells {
		if c := &w.cells[i]; age(slot, c.slot)+Slots <= 2*Slots {
			sum += c.n
		}
	}
	return sum
}
