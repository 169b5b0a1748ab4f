package check

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
)

// outcome counts what a simulated minute came to: calls, calls that
// succeeded, attempts sent, and calls whose first attempt succeeded.
type outcome struct {
	calls, good, sends, firstTry int
}

// The simulated minute has 6000 calls: enough that a share of a few percent
// is not chance.
const (
	simRate = 100 // calls a second
	simTime = 60 * time.Second
)

// event is an attempt that is due, with the state of its call.
type event struct {
	at    time.Time
	state forbear.State
}

// events is a heap by time, so that attempts of different calls interleave
// as they would.
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// minute sends calls through a Retryer of the dependency's own policy for a
// minute of virtual time, each attempt failing with the given probability.
// The breaker is left out, so that the result shows the retry policy alone.
// The draws are seeded: two runs give the same figures.
func minute(d *policyfile.Dependency, failing float64) (outcome, error) {
	random := rand.New(rand.NewPCG(1, 2))
	p := d.Policy
	p.Breaker = breaker.Policy{Disabled: true}
	budget := budget.NewRatio(p.WithDefaults().Budget)
	r, err := forbear.New(d.Name, p, forbear.WithoutLog(), forbear.WithCallerDeadLetter(),
		forbear.WithBudget(budget), forbear.WithRand(random.Float64))
	if err != nil {
		return outcome{}, err
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var due events
	for i := range simRate * int(simTime/time.Second) {
		at := start.Add(time.Duration(i) * time.Second / simRate)
		// A key, so that no rule about writes keeps the calls from being
		// retried.
		due = append(due, event{at, forbear.State{Start: at, Key: "simulated", NeedsKey: false}})
	}
	heap.Init(&due)
	o := outcome{calls: len(due)}
	for due.Len() > 0 {
		e := heap.Pop(&due).(event)
		first := e.state.Attempt == 0
		if first {
			budget.Request(e.at)
		}
		// Attempts take no time here: what counts is how many are sent.
		o.sends++
		if random.Float64() >= failing {
			o.good++
			if first {
				o.firstTry++
			}
			continue
		}
		f := forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}
		if dec := r.Next(&e.state, f, e.at); dec.Retry {
			e.at = e.at.Add(dec.Wait)
			heap.Push(&due, e)
		}
	}
	return o, nil
}

// decide asks the policy about one failure after the first attempt, with a
// given draw and nothing known of budget or breaker.
func decide(d *policyfile.Dependency, f forbear.Failure, draw float64) forbear.Decision {
	p := d.Policy.WithDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := forbear.State{Attempt: 1, Start: now, Key: "simulated"}
	return forbear.Decide(&p, s, f, now, func() float64 { return draw })
}
