package window_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

const span = 30 * time.Second

// counter is what both windows do.
type counter struct {
	name string
	add  func(now time.Time, n int)
	sum  func(now time.Time) int64
}

func counters() []counter {
	exact, sharded := window.NewExact(span), window.NewSharded(span)
	return []counter{
		{"exact", func(now time.Time, n int) { exact.Add(now, int64(n)) }, exact.Sum},
		{"sharded", func(now time.Time, n int) { sharded.Add(now, uint32(n)) }, sharded.Sum},
	}
}

func TestEventsLeaveTheWindow(t *testing.T) {
	slot := window.Width(span)
	for _, start := range []time.Time{window.Epoch(), window.Epoch().Add(time.Hour), window.Epoch().Add(-time.Hour)} {
		for _, w := range counters() {
			w.add(start, 5)
			if got := w.sum(start); got != 5 {
				t.Errorf("%s: at once: got %d, want 5", w.name, got)
			}
			w.add(start.Add(10*time.Second), 2)
			for _, tt := range []struct {
				after time.Duration
				want  int64
			}{
				{10 * time.Second, 7},
				{span - slot - 1, 7},
				{span + slot, 2},
				{span + 10*time.Second - slot - 1, 2},
				{span + 10*time.Second + slot, 0},
				{24 * time.Hour, 0},
			} {
				if got := w.sum(start.Add(tt.after)); got != tt.want {
					t.Errorf("%s: after %v: got %d, want %d", w.name, tt.after, got, tt.want)
				}
			}
		}
	}
}

// Exact never counts too little, Sharded never too much: a budget that asks
// one for retries and the other for requests errs on the dependency's side.
func TestWindowsErrOnTheSafeSide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ws := counters()
	type event struct {
		at time.Time
		n  int64
	}
	var events []event
	now := window.Epoch()
	for range 20_000 {
		now = now.Add(time.Duration(rng.Int64N(int64(40 * time.Millisecond))))
		if rng.IntN(300) == 0 {
			now = now.Add(time.Duration(rng.Int64N(int64(2 * span))))
		}
		n := rng.IntN(4)
		events = append(events, event{now, int64(n)})
		for _, w := range ws {
			w.add(now, n)
		}
		for len(events) > 0 && now.Sub(events[0].at) >= span+2*window.Width(span) {
			events = events[1:]
		}
		var inside, wider, narrower int64
		for _, e := range events {
			age := now.Sub(e.at)
			if wider += e.n; age < span {
				inside += e.n
			}
			if age < span-window.Width(span) {
				narrower += e.n
			}
		}
		if got := ws[0].sum(now); got < inside || got > wider {
			t.Fatalf("exact: got %d, want %d to %d", got, inside, wider)
		}
		if got := ws[1].sum(now); got > inside || got < narrower {
			t.Fatalf("sharded: got %d, want %d to %d", got, narrower, inside)
		}
	}
}

func TestRemove(t *testing.T) {
	w := window.NewExact(span)
	now := window.Epoch().Add(time.Hour)
	w.Remove(now) // nothing to take back
	if got := w.Sum(now); got != 0 {
		t.Errorf("removed from nothing: got %d", got)
	}
	w.Add(now, 2)
	later := now.Add(20 * time.Second)
	w.Remove(later)
	if got := w.Sum(later); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	w.Add(later, 1)
	w.Remove(later)
	if got := w.Sum(now.Add(span + 2*window.Width(span))); got != 0 {
		t.Errorf("the newest event was not the one removed: got %d", got)
	}
}

func TestShardedLosesNothing(t *testing.T) {
	w := window.NewSharded(span)
	now := window.Epoch().Add(time.Hour)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 1000 {
				w.Add(now, 1)
			}
		})
	}
	wg.Wait()
	if got := w.Sum(now); got != 64_000 {
		t.Errorf("got %d, want 64,000", got)
	}
}

// Goroutines that meet at a slot's border, with clocks that differ a little,
// may neither lose nor double more than their difference.
func TestShardedAcrossSlots(t *testing.T) {
	w := window.NewSharded(span)
	start := window.Epoch().Add(time.Hour)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 2000 {
				w.Add(start.Add(time.Duration(i)*5*time.Millisecond+time.Duration(g)*time.Millisecond), 1)
			}
		})
	}
	wg.Wait()
	if got := w.Sum(start.Add(10 * time.Second)); got != 32_000 {
		t.Errorf("got %d, want 32,000", got)
	}
}

func TestShardedAddAllocatesNothing(t *testing.T) {
	w := window.NewSharded(span)
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { w.Add(now, 1) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestWidthOfTinyWindows(t *testing.T) {
	if got := window.Width(1); got != 1 {
		t.Errorf("got %v, want 1ns", got)
	}
	if got := window.Width(span); got != time.Second {
		t.Errorf("got %v, want 1s", got)
	}
}
