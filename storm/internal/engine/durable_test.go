package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/storm"
)

// partial returns the scenario of partial failures with another policy and share.
func partial(p forbear.Policy, share float64) storm.Scenario {
	s, _ := storm.FindNamed("partial")
	s.Engine = storm.Exact
	s.Fleets[0].Client = storm.Client{Policy: &p}
	s.Faults[0].Rate = share
	return s
}

func seconds(s float64) storm.Duration { return storm.Duration(s * float64(time.Second)) }

func mustRun(t *testing.T, s storm.Scenario) *storm.Result {
	t.Helper()
	r, err := storm.Run(t.Context(), s, storm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, name string, got, want, abs float64) {
	t.Helper()
	if !(math.Abs(got-want) <= abs) {
		t.Errorf("%s: got %.5g, want %.5g +- %.3g", name, got, want, abs)
	}
}

// over returns the mean of a series over the seconds [from, to).
func over(r *storm.Result, series []float64, from, to float64) float64 {
	bin := r.Bin.Seconds()
	sum, first, last := 0.0, int(from/bin+0.5), int(to/bin+0.5)
	for _, v := range series[first:last] {
		sum += v
	}
	return sum / float64(last-first)
}

var durableKinds = []forbear.Kind{forbear.Event, forbear.Webhook, forbear.Batch}

// Durable work is done although a third of the attempts fails: the pace earns
// what the budget refuses.
func TestDurableWorkIsDone(t *testing.T) {
	for _, kind := range durableKinds {
		s := partial(forbear.Policy{Kind: kind}, 0.3)
		s.Duration, s.Faults[0].For = seconds(600), seconds(60)
		got := mustRun(t, s).Summary
		attempts := map[forbear.Kind]float64{forbear.Event: 6, forbear.Webhook: 5, forbear.Batch: 4}[kind]
		// What the attempts allow during the fault, and all of the rest.
		lost := 12_000.0
		for range int(attempts) {
			lost *= 0.3
		}
		if open := got.Calls - got.Good - got.Failed; open > 5 {
			t.Errorf("%s: %.0f calls are still open", kind, open)
		}
		if got.Failed > 2*lost+10 {
			t.Errorf("%s: %.0f calls failed, want about %.0f", kind, got.Failed, lost)
		}
		// Each attempt during the fault fails once in three.
		near(t, kind.String()+": retries", got.Retries/12_000, 0.3/0.7, 0.05)
	}
}

// Without the pace the same work would starve: the success of a call is recorded for
// durable callers without a breaker, too.
func TestPaceNeedsNoBreaker(t *testing.T) {
	s := partial(forbear.Policy{Kind: forbear.Event, Breaker: breaker.Policy{Disabled: true}}, 0.3)
	got := mustRun(t, s).Summary
	if got.Multiplier < 1.35 {
		t.Errorf("%.3f sends a call, want about 1/0.7", got.Multiplier)
	}
}

// A dead endpoint gets the budget's share and no more, and consumes no attempts:
// nothing is given up before its time.
func TestDurableWorkWaitsForADeadEndpoint(t *testing.T) {
	for _, kind := range durableKinds {
		s := partial(forbear.Policy{Kind: kind, Breaker: breaker.Policy{Disabled: true}}, 1)
		s.Duration, s.Fleets[0].Rate = seconds(200), 40
		got := mustRun(t, s).Summary
		if got.Multiplier > 1.205 {
			t.Errorf("%s: %.3f sends a call, want at most 1.2 and the floor", kind, got.Multiplier)
		}
		if got.Postponed < got.Calls/2 || got.BudgetRefused > 0 {
			t.Errorf("%s: put off %.0f times, %.0f given up for the budget", kind, got.Postponed, got.BudgetRefused)
		}
		// An item of a batch has 30 s, the others have a day.
		if over := got.Failed > 0.5*got.Calls; over != (kind == forbear.Batch) {
			t.Errorf("%s: %.0f of %.0f failed", kind, got.Failed, got.Calls)
		}
	}
}

// First attempts that an open breaker puts off are made when it closes, and
// counted then.
func TestFirstAttemptsArePutOff(t *testing.T) {
	s := partial(forbear.Policy{Kind: forbear.Event}, 1)
	s.Duration = seconds(600) // what is put off again and again waits for up to five minutes
	s.Faults[0].At, s.Faults[0].For = seconds(10), seconds(30)
	// Hardly a call at the end, so that none is under way then.
	s.Faults = append(s.Faults, storm.Fault{Kind: storm.Spike, Factor: 0.001, At: seconds(590), For: seconds(10)})
	r := mustRun(t, s)
	got := r.Summary
	if during, after := over(r, r.Series.Fresh, 15, 40), over(r, r.Series.Fresh, 40, 100); during > 5 || after < 250 {
		t.Errorf("%.0f first attempts a second during the outage, %.0f after it", during, after)
	}
	if got.Good+got.Failed < got.Calls-1 {
		t.Errorf("%.0f of %.0f calls never ended", got.Calls-got.Good-got.Failed, got.Calls)
	}
	near(t, "first attempts", got.Attempts-got.Retries, got.Calls, 0.5)
}

// A baseline in the place of the budget has no pace: what it refuses is over.
func TestBaselinesEndWhatTheyRefuse(t *testing.T) {
	s := partial(forbear.Policy{}, 0.3)
	s.Fleets[0].Client = storm.Client{Kind: "event", Breaker: new(false), Baseline: storm.Baseline{Bucket: storm.Bucket{Deposit: 0.1, Size: 10}}}
	got := mustRun(t, s).Summary
	if got.Postponed > 0 || got.BudgetRefused == 0 {
		t.Errorf("put off %.0f times, refused %.0f", got.Postponed, got.BudgetRefused)
	}
	near(t, "multiplier", got.Multiplier, 1.1, 0.01)
}

// What pended when the breaker opened is asked again when it lets probes
// through, and the backoff counts from the failure.
func TestPendingDecisionsAreAskedAgain(t *testing.T) {
	s := partial(forbear.Policy{Kind: forbear.Event, Backoff: forbear.Backoff{Base: 30 * time.Second}}, 1)
	s.Fleets[0].Rate, s.Fleets[0].Burst, s.Fleets[0].Instances = 0, 100, 1
	s.Duration, s.Faults[0].For = seconds(300), seconds(10)
	got := mustRun(t, s).Summary
	if got.Good != 100 {
		t.Errorf("%.0f of 100 calls ended well", got.Good)
	}
	// Open for 5 s and then 10, put off for a few, and the rest of a backoff of
	// 15 s on average.
	if got.Mean < 15_000 || got.Mean > 28_000 {
		t.Errorf("a call took %.0f ms", got.Mean)
	}
	t.Logf("%.0f ms", got.Mean)
}
