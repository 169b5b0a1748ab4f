package check

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/storm"
)

// TestPartialAsTheSimulatorSays: three processes of the quick simulation say what the
// simulator says of a fleet of sixteen. Between them lies chance: where a breaker opens is
// a matter of luck, and neither is free of it in it.
func TestPartialAsTheSimulatorSays(t *testing.T) {
	for name, p := range map[string]forbear.Policy{
		"default":            {},
		"lowest rate":        {Breaker: breaker.Policy{FailureRate: 0.25}},
		"strict":             {Strict: true, Breaker: breaker.Policy{FailureRate: 0.25}},
		"one probe":          {Breaker: breaker.Policy{FailureRate: 0.25, Probes: 1, OpenFor: 5 * time.Second}},
		"long window":        {Breaker: breaker.Policy{FailureRate: 0.26, Window: 400, MinCalls: 40}},
		"third":              {Breaker: breaker.Policy{FailureRate: 0.33}},
		"two fifths":         {Breaker: breaker.Policy{FailureRate: 0.4}},
		"few calls":          {Breaker: breaker.Policy{FailureRate: 0.4, MinCalls: 5}},
		"short":              {Breaker: breaker.Policy{FailureRate: 0.35, WindowTime: 10 * time.Second}},
		"budget opens":       {Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}},
		"budget off":         {Breaker: breaker.Policy{OnBudget: breaker.BudgetIgnored}},
		"one retry, a tenth": {MaxRetries: 1, Budget: budget.Policy{Ratio: 0.1}, Breaker: breaker.Policy{FailureRate: 0.25}},
		"five retries":       {MaxRetries: 5, Breaker: breaker.Policy{FailureRate: 0.25, Window: 200}},
	} {
		got, want := cost{}, fleetCost(t, p)
		if doubtful(p.Breaker) {
			got = costOf(p)
		}
		if got.selfInflicted != want.selfInflicted && math.Abs(want.breaker-want.fault) > 0.1 {
			t.Errorf("%s: got %+v, the simulator says %+v", name, got, want)
		}
		if want.selfInflicted && math.Abs(got.fault-want.fault) > 0.02 || math.Abs(got.breaker-want.breaker) > 0.1 {
			t.Errorf("%s: got %+v, the simulator says %+v", name, got, want)
		}
		t.Logf("%-20s got %+.2v want %+.2v", name, got, want)
	}
}

// fleetCost runs the simulator's scenario with sixteen processes in place of four.
func fleetCost(t *testing.T, p forbear.Policy) cost {
	t.Helper()
	s, _ := storm.FindNamed("partial")
	s.Bin = storm.Duration(time.Second)
	s.Fleets[0].Rate, s.Fleets[0].Instances = 4*s.Fleets[0].Rate, 4*s.Fleets[0].Instances
	s.Fleets[0].Client = storm.Client{Policy: &p, Baseline: storm.Baseline{Unchecked: true}}
	r, err := storm.Run(context.Background(), s, storm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cost{r.Summary.FaultCost, r.Summary.BreakerCost, r.Summary.Verdict == storm.SelfInflicted}
}

// TestCalmBreakersStayClosed: what mayOpen passes by refuses nothing.
func TestCalmBreakersStayClosed(t *testing.T) {
	random, calm := rand.New(rand.NewPCG(1, 1)), 0
	for range 150 {
		p := forbear.Policy{MaxRetries: 1 + random.IntN(5), Breaker: breaker.Policy{
			FailureRate: 0.25 + 0.2*random.Float64(), Window: 20 + random.IntN(400), MinCalls: 1 + random.IntN(20),
			WindowTime: time.Duration(1+random.IntN(120)) * time.Second,
		}}
		for i, l := range lucks() {
			if l.mayOpen(p.Breaker) {
				continue
			}
			calm++
			if o, err := partialMinute(p, i, true); err != nil || o.refused > 0 {
				t.Errorf("%+v: %d refused (%v)", p.Breaker, o.refused, err)
			}
		}
	}
	if calm < 50 {
		t.Errorf("%d calm breakers of 300, want more", calm)
	}
}

// TestRatioIsTheBudget: the simulation's budget gives what budget.Ratio gives.
func TestRatioIsTheBudget(t *testing.T) {
	for _, p := range []budget.Policy{{}, {Ratio: 0.07, Window: 10 * time.Second}, {MinRetries: 10, Of: budget.OfTotal}, {Ratio: 0.01, RoundUp: true}} {
		p = p.WithDefaults()
		random, at := rand.New(rand.NewPCG(1, 1)), time.Duration(0)
		ours, real := newRatio(p), budget.NewRatio(p)
		for i := range 20_000 {
			at += time.Duration(random.IntN(40)) * time.Millisecond
			if i%2000 == 1999 {
				at += time.Duration(random.IntN(90)) * time.Second
			}
			now := window.Epoch().Add(at)
			switch random.IntN(6) {
			case 0, 1, 2:
				ours.Request(now)
				real.Request(now)
			case 3, 4:
				spent := ours.spent(at)
				if got, want := ours.Spend(now, budget.Transient), real.Spend(now, budget.Transient); got != want || spent == want {
					t.Fatalf("%+v at %v: spend %v, spent %v, want %v", p, at, got, spent, want)
				}
			case 5:
				ours.Refund(now, budget.Transient)
				real.Refund(now, budget.Transient)
			}
			if got, want := ours.Level(now), real.Level(now); got != want {
				t.Fatalf("%+v at %v: level %v, want %v", p, at, got, want)
			}
		}
	}
}

// Most programs that are met hold no settings, and are nothing that was left unread; one
// that is named is.
func TestProgramsThatAreMet(t *testing.T) {
	for _, tt := range []struct {
		text  string
		met   bool
		files int
		fault bool
	}{
		{"a = f'{{b}}' # retry\n", true, 0, false},
		{"a = 1\n", false, 0, true},
		{"CELERY_TASK_PUBLISH_RETRY = False\n", true, 1, false},
	} {
		read := ReadAll([]Input{{Name: "settings.py", Data: []byte(tt.text), Met: tt.met}})
		if read.Files != tt.files || (len(read.Problems) > 0) != tt.fault {
			t.Errorf("%q: got %d files, %v", tt.text, read.Files, read.Problems)
		}
	}
}
