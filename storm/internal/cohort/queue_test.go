package cohort

import (
	"math"
	"slices"
	"testing"
)

func TestQueueServesTheOldestFirst(t *testing.T) {
	q := newQueue(10, 2)
	for step, n := range []float64{4, 0, 6} {
		q.put(step, 0, mass{n, n * float64(step)})
		q.put(step, 1, mass{n, 0})
		q.close(step)
	}
	if q.total != 20 || q.ahead(2, 100) != 8 || q.ahead(2, 1) != 8 || q.ahead(0, 1) != 0 {
		t.Fatalf("%v in the queue, %v before step 2", q.total, q.ahead(2, 100))
	}
	type part struct {
		step int
		part float64
	}
	var got []part
	take := func(n float64) {
		q.serve(n, func(step int, p float64) { got = append(got, part{step, p}) })
	}
	take(2)
	take(9)
	take(100)
	if want := []part{{0, 0.25}, {0, 0.75}, {2, 0.25}, {2, 0.75}}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
	if q.total != 0 || q.head != q.tail {
		t.Errorf("%v left in a queue that is empty", q.total)
	}
}

// The memory of a finished run must not shine through.
func TestQueuesAreEmptyWhenTheyAreReused(t *testing.T) {
	q := newQueue(5, 1)
	q.put(0, 0, mass{3, 0})
	q.close(0)
	queues.Put(q)
	q = newQueue(4, 1)
	if q.total != 0 || q.all[0] != 0 || q.n[0] != 0 || q.left[0] != 0 || q.tail != 0 {
		t.Errorf("%+v, want an empty queue", q)
	}
}

func TestInTime(t *testing.T) {
	for _, tt := range []struct {
		name              string
		limit, wait, want float64
	}{
		{"far below", 1, 0.1, 1},
		{"far above", 1, 3, 0},
		{"the knife edge", 1, 1, 0.5},
	} {
		if got := inTime(tt.limit, tt.wait, 1000, 0.005); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v in time, want %v", tt.name, got, tt.want)
		}
	}
	// One standard deviation of a thousand service times is 32 ms.
	if got := inTime(1.0316, 1, 1000, 0.005); math.Abs(got-0.841) > 0.005 {
		t.Errorf("%v in time one deviation below the limit, want 0.841", got)
	}
	if lastMoment(2000, 1000) != 0.5 || lastMoment(500, 1000) != 1 {
		t.Error("a service at half of the arrivals serves half of them in time")
	}
}

// The van der Corput sequence fills (0, 1) evenly at every power of two.
func TestRadical(t *testing.T) {
	var all []float64
	for i := range 8 {
		all = append(all, radical(i))
	}
	slices.Sort(all)
	if want := []float64{0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875}; !slices.Equal(all, want) {
		t.Errorf("got %v", all)
	}
}

func TestEven(t *testing.T) {
	line := []float64{10, 20, 30, 40, 50}
	if !even(line) {
		t.Error("evenly spaced waits are not uniform")
	}
	line[2] += 0.3
	if even(line) {
		t.Error("a wait that is off by 0.3 steps is uniform")
	}
}

// A box comes and goes at its ends, and its mass is what was put in.
func TestSchedule(t *testing.T) {
	x := &engine{steps: 100, t: 7}
	l := &lane{ring: make([]mass, 64)}
	x.schedule(l, []box{{2, 6, 0.75}, {4, 5, 0.25}}, 8, 3, 1)
	var sum mass
	var got []float64
	for step := 8; step < 20; step++ {
		sum.n += l.ring[step].n
		sum.start += l.ring[step].start
		got = append(got, sum.n)
		if sum.n > 0 && math.Abs(sum.start/sum.n-3) > 1e-9 {
			t.Errorf("step %d: mean start %v, want 3", step, sum.start/sum.n)
		}
	}
	if want := []float64{0, 0, 0, 1.5, 1.5, 3.5, 1.5, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("arrivals %v, want %v", got, want)
	}
}
