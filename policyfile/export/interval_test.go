package export

import (
	"container/heap"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Envoy's budget_interval is not written: over 30 s it would let every retry pass. The model
// is RetryBudgetImpl of Envoy's resource_manager_impl.h, with Envoy's own waits, in an outage.
func TestEnvoyIntervals(t *testing.T) {
	for _, rate := range []int{100, 1000} {
		for _, response := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
			if got := outage(rate, response, 30*time.Second); got < 3.9 {
				t.Errorf("%d/s of %v: %.2fx over 30s, want all retries", rate, response, got)
			}
			if got := outage(rate, response, 0); got > 2 {
				t.Errorf("%d/s of %v: %.2fx without an interval", rate, response, got)
			}
		}
	}
	for _, format := range []string{"envoy", "istio"} {
		if text := body(write(t, format, "{owner: a, idempotency: reuse}")); strings.Contains(text, "budget_interval") || strings.Contains(text, "budgetInterval") {
			t.Errorf("%s has an interval\n%s", format, text)
		}
	}
}

// outage is how many requests one call becomes, with three retries, where all fail.
func outage(rate int, response, interval time.Duration) float64 {
	const share, floor, most = 0.2, 3, 3
	rng := rand.New(rand.NewPCG(1, 2))
	events := &queue{}
	initial := 45 * rate
	for i := range initial {
		heap.Push(events, event{at: time.Duration(i) * time.Second / time.Duration(rate)})
	}
	var began []time.Duration // of the requests sent, from the first that the interval counts
	sent, requests, retries := 0, 0, 0
	for events.Len() > 0 {
		e := heap.Pop(events).(event)
		if !e.done {
			sent++
			requests++
			began = append(began, e.at)
			heap.Push(events, event{e.at + response, e.retry, true})
			continue
		}
		requests--
		if e.retry > 0 {
			retries--
		}
		counted := requests
		if interval > 0 {
			for len(began) > 0 && began[0] < e.at-interval {
				began = began[1:]
			}
			counted = len(began)
		}
		if e.retry < most && retries < max(int(share*float64(counted)), floor) {
			retries++ // from its wait on
			wait := 25 * time.Millisecond << e.retry
			heap.Push(events, event{e.at + time.Duration(rng.Int64N(int64(wait))), e.retry + 1, false})
		}
	}
	return float64(sent) / float64(initial)
}

// event is that a request is sent, or done.
type event struct {
	at    time.Duration
	retry int
	done  bool
}

type queue []event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
