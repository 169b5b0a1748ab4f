package storm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/storm"
)

// scenario is a service at 70 % load that loses half of its capacity for ten
// seconds.
func scenario() storm.Scenario {
	return storm.Scenario{
		Name: "brownout",
		Fleets: []storm.Fleet{{Rate: 2000, Instances: 20, Client: storm.Client{
			Retries: new(3),
			Timeout: storm.Duration(time.Second),
			Base:    storm.Duration(100 * time.Millisecond),
			Cap:     storm.Duration(2 * time.Second),
		}}},
		Services: []storm.Service{{Name: "service", Capacity: 2000 / 0.7}},
		Faults: []storm.Fault{{
			Kind: storm.Brownout, At: storm.Duration(10 * time.Second), For: storm.Duration(10 * time.Second),
		}},
	}
}

func ExampleRun() {
	r, err := storm.Run(context.Background(), scenario(), storm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Summary.Verdict)
	fmt.Printf("%.1fx the load\n", r.Summary.Multiplier)
	// Output:
	// recovered
	// 0.9x the load
}

func ExampleCompare() {
	all, err := storm.Compare(context.Background(), scenario(), storm.Options{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range all {
		fmt.Printf("%-20s %s\n", c.Variant.Title, c.Result.Summary.Verdict)
	}
	// Output:
	// no backoff           metastable
	// backoff, no jitter   metastable
	// + full jitter        metastable
	// + retry budget       recovered
	// + circuit breaker    recovered
}

func ExampleLeastTrigger() {
	s := scenario()
	s.Fleets[0].Client.Breaker, s.Fleets[0].Client.Baseline.NoBudget = new(false), true
	t, err := storm.LeastTrigger(context.Background(), s, storm.Options{Within: 20 * time.Millisecond}, 20*time.Second, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Sticks, t.Least.D().Round(time.Second))
	// Output: true 4s
}

func ExampleRunSweep() {
	s := scenario()
	s.Fleets[0].Client.Breaker, s.Fleets[0].Client.Baseline.NoBudget = new(false), true
	w, err := storm.RunSweep(context.Background(), s, storm.SweepBounds{Loads: 2, Triggers: 3}, storm.Options{Within: 20 * time.Millisecond}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, row := range w.Cells {
		for j, c := range row {
			fmt.Printf("%.1fx %2.0fs %s\n", w.Loads[i], w.Triggers[j].Seconds(), c.Verdict)
		}
	}
	// Output:
	// 0.5x  7s recovered
	// 0.5x 13s recovered
	// 0.5x 20s recovered
	// 1.5x  7s overloaded
	// 1.5x 13s overloaded
	// 1.5x 20s overloaded
}

// How a policy fares when more and more of the attempts fail at random. A
// breaker that opens when the retry budget is spent is worse than the failures.
func ExampleRunCurve() {
	s, _ := storm.FindNamed("partial")
	s.Fleets[0].Client.Policy = &forbear.Policy{Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}}
	c, err := storm.RunCurve(context.Background(), s, 5, storm.Options{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range c.Points[:3] {
		fmt.Printf("%.0f %% fail: %.1f of the calls end well, %.1f without the breaker: %s\n", 100*p.Share, p.Good, p.Unguarded, p.Verdict)
	}
	// Output:
	// 20 % fail: 0.1 of the calls end well, 1.0 without the breaker: self-inflicted
	// 40 % fail: 0.0 of the calls end well, 0.7 without the breaker: self-inflicted
	// 60 % fail: 0.0 of the calls end well, 0.5 without the breaker: undecided
}

func ExampleFieldErrors() {
	err := storm.Scenario{Fleets: []storm.Fleet{{}}, Services: []storm.Service{{Name: "s", Law: "odd"}}}.Validate()
	for _, f := range storm.FieldErrors(err) {
		fmt.Println(f)
	}
	// Output:
	// fleets[0]: sets 0 of rate, load, users and burst above 0: want exactly one
	// services[0].law: "odd" is unknown: want exponential, fixed or lognormal
}
