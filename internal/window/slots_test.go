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
