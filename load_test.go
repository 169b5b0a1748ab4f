package forbear_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// load is a simulated client: calls start at a steady rate, a part of them
// fails at every attempt, and their retries go through Retryer.Next on the
// simulation's own clock.
type load struct {
	rate     int     // calls a second
	fail     float64 // the part of the calls that fails, all their attempts
	duration time.Duration
	weight   int // how many calls each that is played stands for
}

// sent is what the dependency saw, second by second.
type sent struct {
	initial, retries []int
}

// rate returns the mean of attempts a second in the seconds [from, to).
func (s sent) rate(from, to int) float64 {
	n := 0
	for i := from; i < to; i++ {
		n += s.initial[i] + s.retries[i]
	}
	return float64(n) / float64(to-from)
}

// attempt is one send of a failing call, due at a time.
type attempt struct {
	due   time.Duration
	state *forbear.State
}

type attempts []attempt

func (a attempts) Len() int           { return len(a) }
func (a attempts) Less(i, j int) bool { return a[i].due < a[j].due }
func (a attempts) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *attempts) Push(x any)        { *a = append(*a, x.(attempt)) }
func (a *attempts) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// run plays the load. Retries that fall due after its end are dropped.
func (l load) run(r *forbear.Retryer, b budget.Budget) sent {
	start := time.Unix(1_000_000, 0)
	seconds := int(l.duration / time.Second)
	out := sent{make([]int, seconds), make([]int, seconds)}
	gap := time.Second / time.Duration(l.rate/l.weight)
	failed := 0.0
	var due attempts
	play := func(until time.Duration) {
		for len(due) > 0 && due[0].due <= until {
			a := heap.Pop(&due).(attempt)
			if a.state.Attempt > 1 {
				out.retries[a.due/time.Second] += l.weight
			}
			d := r.Next(a.state, forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, start.Add(a.due))
			if next := a.due + d.Wait; d.Retry && next < l.duration {
				heap.Push(&due, attempt{next, a.state})
			}
		}
	}
	for now := time.Duration(0); now < l.duration; now += gap {
		play(now)
		b.Request(start.Add(now))
		out.initial[now/time.Second] += l.weight
		if failed += l.fail; failed >= 1 {
			failed--
			heap.Push(&due, attempt{now, &forbear.State{Attempt: 1, Start: start.Add(now)}})
		}
	}
	play(l.duration - 1)
	return out
}

// simulate plays the load against a Retryer of its own. Where no budget levels them
// out, too few calls would scatter.
func (l load) simulate(t testing.TB, p forbear.Policy, b budget.Budget) sent {
	t.Helper()
	l.weight = ringtest.Size(4, 1)
	if b == nil {
		l.weight = ringtest.Size(10, 1)
		b = budget.NewRatio(p.WithDefaults().Budget)
	}
	draw := rand.New(rand.NewPCG(1, 2)).Float64
	p.Breaker.Disabled = true // the budget alone is on trial
	r := quiet(t, p, forbear.WithBudget(b), forbear.WithRand(draw), forbear.WithCallerDeadLetter())
	return l.run(r, b)
}

// unlimited is no budget at all, which no policy can say.
func unlimited() budget.Budget { return budget.NewTokenBucket(1<<40, 1) }
