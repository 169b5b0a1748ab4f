package pace_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/pace"
)

// An inactive pacer must cost next to nothing: it is asked twice a call, on the success
// path.
func BenchmarkInactive(b *testing.B) {
	p := &pace.Pacer{}
	b.ReportAllocs()
	for b.Loop() {
		if p.Active() {
			b.Fatal("active")
		}
		if p.Active() {
			b.Fatal("active")
		}
	}
}

func BenchmarkActive(b *testing.B) {
	p := &pace.Pacer{}
	p.Throttled(time.Now(), time.Now(), 0)
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		if _, _, ok := p.Turn(now, now, now.Add(time.Second)); ok {
			p.Passed(now, now)
		}
	}
}

func TestInactiveAllocatesNothing(t *testing.T) {
	p, now := &pace.Pacer{}, time.Now()
	if n := testing.AllocsPerRun(100, func() {
		_, _, _ = p.Turn(now, now, now)
		p.Passed(now, now)
		_ = p.Reading()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
