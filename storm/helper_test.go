package storm

import (
	"testing"
	"time"
)

//forbear:plain arithmetic on one goroutine; internal/parallel is raced, and what runs on it

func seconds(s float64) Duration { return Duration(s * float64(time.Second)) }

const ms = Duration(time.Millisecond)

// brownout is the study's reference case: 70 % load, a timeout of a second,
// three retries, half the capacity gone for a while.
func brownout(rate, length float64) Scenario {
	return Scenario{
		Name: "brownout", Duration: seconds(60), Engine: Exact,
		Fleets: []Fleet{{Rate: rate, Client: Client{
			Retries: new(3), Timeout: 1000 * ms, Base: 100 * ms, Cap: 2000 * ms,
			Breaker: new(false), Baseline: Baseline{NoBudget: true},
		}}},
		Services: []Service{{Name: "s", Capacity: rate / 0.7}},
		Faults:   []Fault{{Kind: Brownout, At: seconds(10), For: seconds(length)}},
	}
}

func withBudget(s Scenario) Scenario {
	s.Fleets = append([]Fleet(nil), s.Fleets...)
	s.Fleets[0].Client.Baseline.NoBudget = false
	s.Fleets[0].Client.Budget = Budget{Ratio: 0.2, Window: seconds(10)}
	return s
}

func mustRun(t testing.TB, s Scenario) *Result {
	t.Helper()
	r, err := Run(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
