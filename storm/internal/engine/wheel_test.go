package engine

import (
	"math/rand/v2"
	"sort"
	"testing"
)

// The wheel must give back exactly what a stable sort gives, at every density,
// far events and ties included.
func TestWheelKeepsExactOrder(t *testing.T) {
	for _, perSecond := range []float64{1, 1e3, 1e6} {
		rng := rand.New(rand.NewPCG(1, 2))
		w := newWheel(perSecond)
		var pending []event
		var now int64
		put := func(at int64) {
			e := event{at: at, idx: uint32(len(pending))}
			pending = append(pending, e)
			w.push(e)
		}
		next := func() int64 {
			switch rng.IntN(5) {
			case 0:
				return now // a tie
			case 1:
				return now + rng.Int64N(2000)*1e9 // far
			default:
				return now + rng.Int64N(1e9)
			}
		}
		for range 2000 {
			put(next())
		}
		popped := make([]event, 0, 20000)
		for range 8000 {
			e, ok := w.pop()
			if !ok {
				t.Fatalf("%v/s: empty with %d pending", perSecond, len(pending)-len(popped))
			}
			if e.at < now {
				t.Fatalf("%v/s: %d came after %d", perSecond, e.at, now)
			}
			now = e.at
			popped = append(popped, e)
			put(next())
		}
		for {
			e, ok := w.pop()
			if !ok {
				break
			}
			popped = append(popped, e)
		}
		want := append([]event(nil), pending...)
		sort.SliceStable(want, func(i, j int) bool { return want[i].at < want[j].at })
		if len(want) != len(popped) {
			t.Fatalf("%v/s: %d events out, %d in", perSecond, len(popped), len(want))
		}
		for i := range want {
			if want[i].at != popped[i].at {
				t.Fatalf("%v/s: event %d at %d, want %d", perSecond, i, popped[i].at, want[i].at)
			}
		}
	}
}

func TestWheelKeepsTiesInOrder(t *testing.T) {
	w := newWheel(1000)
	for i := range uint32(500) {
		w.push(event{at: 5e9, idx: i})
	}
	for i := range uint32(500) {
		if e, _ := w.pop(); e.idx != i {
			t.Fatalf("tie %d came out as %d", i, e.idx)
		}
	}
}

// Also where the slot is being read already.
func TestWheelKeepsLateTiesInOrder(t *testing.T) {
	w := newWheel(1000)
	w.push(event{at: 5e9, idx: 0})
	w.pop()
	for i := range uint32(50) {
		w.push(event{at: 5e9, idx: i + 1})
	}
	for i := range uint32(50) {
		if e, _ := w.pop(); e.idx != i+1 {
			t.Fatalf("tie %d came out as %d", i+1, e.idx)
		}
	}
}

func TestWheelAllocatesNothingInSteadyState(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := newWheel(100_000)
	var now int64
	for range 100_000 {
		w.push(event{at: int64(rng.ExpFloat64() * 1e9)})
	}
	step := func() {
		for range 10_000 {
			e, _ := w.pop()
			now = e.at
			w.push(event{at: now + int64(rng.ExpFloat64()*1e9)})
		}
	}
	for range 400 {
		step()
	}
	if n := testing.AllocsPerRun(20, step); n > 5 {
		t.Errorf("10,000 events: %v allocations, want about none", n)
	}
}

func BenchmarkHold(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(map[int]string{1_000: "1k", 100_000: "100k", 1_000_000: "1M"}[n], func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			w := newWheel(float64(n))
			for range n {
				w.push(event{at: int64(rng.ExpFloat64() * 1e9)})
			}
			for b.Loop() {
				e, _ := w.pop()
				w.push(event{at: e.at + int64(rng.ExpFloat64()*1e9)})
			}
		})
	}
}
