package window_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

func TestSlots(t *testing.T) {
	exact, sharded := window.NewExact(span), window.NewSharded(span)
	start := window.Epoch().Add(-time.Hour)
	for i := range 40 {
		at := start.Add(time.Duration(i) * time.Second)
		exact.Add(at, int64(i))
		sharded.Add(at, uint32(i))
	}
	now := start.Add(39*time.Second + 1)
	var got [window.Slots]int64
	first := sharded.Slots(start, &got)
	if newest := sharded.Slots(now, &got); newest != first+39 {
		t.Errorf("newest slot is %d, want %d", newest, first+39)
	}
	for age, n := range got {
		if want := int64(39 - age); n != want {
			t.Errorf("sharded, age %d: got %d, want %d", age, n, want)
		}
	}
	exact.Slots(now, &got)
	for age, n := range got {
		if want := int64(39 - age); n != want {
			t.Errorf("exact, age %d: got %d, want %d", age, n, want)
		}
	}
}

// Events of slot 0, the first that a process has, are in the slots like all others:
// cells that were never used have its number as well.
func TestSlotsFromTheFirstOn(t *testing.T) {
	span := 30 * time.Second
	exact, sharded := window.NewExact(span), window.NewSharded(span)
	exact.Add(window.Epoch(), 5)
	sharded.Add(window.Epoch(), 5)
	for _, at := range []int{0, 1, 29} {
		var counts [2][window.Slots]int64
		now := window.Epoch().Add(time.Duration(at) * time.Second)
		exact.Slots(now, &counts[0])
		sharded.Slots(now, &counts[1])
		if counts[0][at] != 5 || counts[1][at] != 5 {
			t.Errorf("after %d slots: %v", at, counts)
		}
	}
}
