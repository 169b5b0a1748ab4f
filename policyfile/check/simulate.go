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

// outcome is what a simulated minute came to.
type outcome struct {
	calls, good, sends, firstTry int
}

// The simulated minute: enough calls for a share to mean something.
const (
	simRate = 100 // calls a second
	simTime = 60 * time.Second
)

// event is an attempt that is due.
type event struct {
	at    time.Time
	state forbear.State
}

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
// minute of virtual time, each attempt failing with the given probability. The
// breaker is left out, so that what is seen is the policy of the retries. The
// draws are seeded: every run is alike.
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

// decide asks the policy about one failure after the first attempt.
func decide(d *policyfile.Dependency, f forbear.Failure, draw float64) forbear.Decision {
	p := d.Policy.WithDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := forbear.State{Attempt: 1, Start: now, Key: "simulated"}
	return forbear.Decide(&p, s, f, now, func() float64 { return draw })
}
