package bench

import (
	"strings"
	"testing"
	"time"
)

// The limits that forbear holds. Allocations are exact. Speed is only ever
// compared with a peer's in the same run, by the medians of turns taken
// alternately, and a comparison that fails is measured a second time and a
// third: what is true stays true, what was the machine does not.

// costs measures the peers of a scenario, by name.
func costs(t *testing.T, id string, workers int) map[string]Cost {
	t.Helper()
	for _, s := range Scenarios() {
		if s.ID != id {
			continue
		}
		got, err := Measure(s.Peers, workers, 5, 30*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]Cost{}
		for i, p := range s.Peers {
			byName[p.Name] = got[i]
		}
		return byName
	}
	t.Fatalf("no scenario %q", id)
	return nil
}

// within measures up to three times until holds is true.
func within(t *testing.T, holds func() (bool, string)) {
	t.Helper()
	var seen []string
	for range 3 {
		ok, what := holds()
		if ok {
			t.Log(what)
			return
		}
		seen = append(seen, what)
	}
	t.Errorf("three times out of three:\n%s", strings.Join(seen, "\n"))
}

// fasterThan fails the test unless forbear's CPU is below that of the peers.
func fasterThan(t *testing.T, id, who string, peers ...string) {
	t.Helper()
	within(t, func() (bool, string) {
		got := costs(t, id, 1)
		ok := true
		lines := []string{}
		for _, peer := range peers {
			ratio := got[who].CPU / got[peer].CPU
			ok = ok && ratio < 1
			lines = append(lines, line(who, peer, ratio))
		}
		return ok, strings.Join(lines, "\n")
	})
}

func TestFirstTryAllocatesNothing(t *testing.T) {
	for _, id := range []string{"A", "C1"} {
		got := costs(t, id, 1)
		for _, who := range []string{"forbear", "forbear, no breaker"} {
			if n := got[who].Allocs; n != 0 {
				t.Errorf("scenario %s, %s: %d allocations, want 0", id, who, n)
			}
		}
	}
}

// The peers keep no circuit breaker and set no time limit, so bare forbear does
// neither: the caller's deadline comes first. With a limit of its own it is still
// faster than those that allocate more than once, and than any that sets one.
func TestFirstTryFasterThanAllWithAContext(t *testing.T) {
	fasterThan(t, "A", "forbear", "backoff", "retry-go", "failsafe-go", "aws, standard mode")
	fasterThan(t, "A", "forbear, bare", "gax", "go-retry", "backoff", "retry-go", "failsafe-go", "aws, standard mode")
	fasterThan(t, "A", "forbear", "gax, with a timeout")
	fasterThan(t, "A", "forbear, no breaker", "backoff", "retry-go", "failsafe-go", "aws, standard mode")
}

func TestSharedBudgetOnTwoProcessors(t *testing.T) {
	for _, id := range []string{"C1", "C2"} {
		within(t, func() (bool, string) {
			one, two := costs(t, id, 1)["forbear"], costs(t, id, 2)["forbear"]
			// Waiting for each other would show in both: in time, since two
			// share the work, and in CPU, by caches that change hands. Other
			// work on the machine shows in one of them at most.
			ratio := min(two.Wall/one.Wall, two.CPU/one.CPU)
			return ratio <= 1.2, line("scenario "+id+" on two processors", "on one", ratio)
		})
	}
}

func TestTwoRetriesAllocateAtMostFive(t *testing.T) {
	for _, id := range []string{"B", "C2"} {
		if got := costs(t, id, 1)["forbear"].Allocs; got > 5 {
			t.Errorf("scenario %s: %d allocations, want at most 5", id, got)
		}
	}
}

// One allocation for the contexts, one for the correlation id, and one in each line
// of the log, which the logger makes for fields beyond the fifth.
func TestTwoLoggedRetriesAllocateAtMostFour(t *testing.T) {
	if got := costs(t, "B", 1)["forbear, logging JSON"].Allocs; got > 4 {
		t.Errorf("%d allocations, want at most 4", got)
	}
}

func TestTwoRetriesFasterThanAllWithAContext(t *testing.T) {
	fasterThan(t, "B", "forbear, no breaker", "gax", "go-retry", "backoff", "retry-go", "failsafe-go", "aws, standard mode")
}

func TestHTTPSuccessAllocations(t *testing.T) {
	for _, id := range []string{"D1", "D2"} {
		got := costs(t, id, 1)
		if more := got["forbear"].Allocs - got["net/http, loop by hand"].Allocs; more > 10 {
			t.Errorf("scenario %s: %d allocations more than net/http, want at most 10", id, more)
		}
	}
}

func TestHTTPRetries(t *testing.T) {
	if got := costs(t, "E", 1)["forbear"].Allocs; got > 70 {
		t.Errorf("%d allocations, want at most 70", got)
	}
	fasterThan(t, "E", "forbear", "aws, standard mode")
}
