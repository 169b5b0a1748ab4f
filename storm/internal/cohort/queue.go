package cohort

import (
	"math"
	"sync"
)

// queue is a FIFO of the masses that arrived in each step, lane by lane. The head
// may be served in part. Nothing moves in it: head and tail are steps of the run, so
// that a step can be found again when its timeout is over.
type queue struct {
	lanes int
	// n is the mass by step and lane, as admitted, and start its mean start, in
	// steps.
	n, start []float64
	// all is the mass by step that is still to be worked on, and arrived the same
	// before anything was dropped.
	all, arrived []float64
	// left is the part of the step's mass that is not served yet.
	left []float64
	// head is the first step that is not served, tail the first that has not
	// arrived.
	head, tail int
	// total is the mass in the queue.
	total float64
}

// queues keeps the memory of finished runs: a page whose sliders move makes a
// hundred a second, with about a megabyte each.
var queues = sync.Pool{New: func() any { return new(queue) }}

// newQueue returns an empty queue for so many steps.
func newQueue(steps, lanes int) *queue {
	q := queues.Get().(*queue)
	*q = queue{
		lanes: lanes,
		n:     zeros(q.n, steps*lanes), start: zeros(q.start, steps*lanes),
		all: zeros(q.all, steps), left: zeros(q.left, steps), arrived: zeros(q.arrived, steps),
	}
	return q
}

// zeros returns n zeros, in the memory of old when they fit.
func zeros(old []float64, n int) []float64 {
	if cap(old) < n {
		return make([]float64, n)
	}
	old = old[:n]
	clear(old)
	return old
}

// put appends mass to the step t, which close ends.
func (q *queue) put(t, lane int, m mass) {
	if m.n <= 0 {
		return
	}
	i := t*q.lanes + lane
	q.n[i] = m.n
	q.start[i] = m.start / m.n
	q.all[t] += m.n
	q.total += m.n
}

// close ends step t: what is in it can be served from now on.
func (q *queue) close(t int) {
	q.left[t] = 1
	q.arrived[t] = q.all[t]
	q.tail = t + 1
}

// serve takes up to n from the head and calls served with each step and the
// part of its mass that is taken.
func (q *queue) serve(n float64, served func(step int, part float64)) {
	for n > 0 && q.head < q.tail {
		have := q.all[q.head] * q.left[q.head]
		if have <= n {
			if have > 0 {
				served(q.head, q.left[q.head])
			}
			q.left[q.head] = 0
			q.head++
			n -= have
			q.total -= have
			continue
		}
		part := n / q.all[q.head]
		served(q.head, part)
		q.left[q.head] -= part
		q.total -= n
		return
	}
	if q.head == q.tail {
		q.total = 0
	}
}

// ahead returns how much of the queue is before step s, or something over enough.
func (q *queue) ahead(s int, enough float64) float64 {
	var sum float64
	for i := s - 1; i >= q.head && sum <= enough; i-- {
		sum += q.all[i] * q.left[i]
	}
	return sum
}

// inTime returns the part of a mass with the given mean wait that was served
// within limit, all in seconds: the wait is a sum of service times, so it spreads with
// sqrt(wait / rate). At a knife edge, where wait and limit are about equal, all
// or nothing would be wrong by half.
func inTime(limit, wait, perSecond, dt float64) float64 {
	sigma := math.Sqrt(max(wait, 0) / perSecond)
	sigma = max(sigma, dt/4) // a step blurs the wait as well
	z := (limit - wait) / sigma
	switch {
	case z > 4:
		return 1
	case z < -4:
		return 0
	}
	return 0.5 * math.Erfc(-z/math.Sqrt2)
}

// lastMoment returns the part of requests that are served in time by a
// service that drops the expired ones and is behind. What is left of the time of
// the request that it takes up grows by the gap to the next arrival and shrinks
// by the service, and starts anew with a gap where nothing was left: that is
// Lindley's recursion of a queue with utilization rate / arrivals, which is then
// the part that has something left when the service ends.
func lastMoment(arrivals, rate float64) float64 { return min(1, rate/arrivals) }
