package check

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
)

// TestWorstCaseHoldsForQuietClients: what is printed as the load with a budget is
// an upper bound for a client with one request in a window too, which the floor
// lets retry whatever the share.
func TestWorstCaseHoldsForQuietClients(t *testing.T) {
	const waived = "waivers: [{rule: R-7, dependency: payments, reason: r, expires: 2027-01-01}]\n"
	for _, tc := range []struct {
		name, fields, more string
		with, busy         float64
	}{
		{"the default", "", "", 4, 1.2},
		{"more retries than the floor", ", max_retries: 5", "", 4, 1.2},
		{"a floor of more than the retries", ", max_retries: 5, budget: {min_retries: 10}", "", 6, 1.2},
		{"a waived floor", ", max_retries: 5, budget: {min_retries: 40}", waived, 6, 1.2},
		{"one retry", ", max_retries: 1", "", 2, 1.2},
		{"strict", ", strict: true", "", 1.2, 1.2},
		{"strict, of the total", ", strict: true, budget: {of: total}", "", 1.25, 1.25},
		{"rounded up", ", budget: {round_up: true}", "", 4, 1.2},
		{"no retry", ", disabled: true", "", 1, 1},
	} {
		s := parse(t, "policy.yaml", fmt.Sprintf("dependencies: {payments: {owner: a%s}}\n%s", tc.fields, tc.more))
		got := Run([]Source{s}, Options{Now: today}).Loads[0]
		if math.Abs(got.With-tc.with) > 1e-9 || math.Abs(got.Busy-tc.busy) > 1e-9 {
			t.Errorf("%s: at worst %v, busy %v; want %v and %v", tc.name, got.With, got.Busy, tc.with, tc.busy)
		}
		p := s.File.Dependencies[0].Policy.WithDefaults()
		for _, requests := range []int{1, 2, 10, 1000} {
			b, now, sent := budget.NewRatio(p.Budget), time.Now(), requests
			for range requests {
				b.Request(now)
			}
			for range requests * p.Retries() {
				if b.Spend(now, budget.Transient) {
					sent++
				}
			}
			if load := float64(sent) / float64(requests); load > got.With+1e-9 {
				t.Errorf("%s: %d requests in a window become %d sends, %v times the load: over %v", tc.name, requests, sent, load, got.With)
			}
		}
	}
}

// TestLimitHoldsForQuietClients: a limit that a busy client keeps may be one that a
// quiet client does not.
func TestLimitHoldsForQuietClients(t *testing.T) {
	for fields, want := range map[string]bool{"": true, ", strict: true": false} {
		s := parse(t, "policy.yaml", "dependencies: {payments: {owner: a"+fields+"}}\n")
		got := Run([]Source{s}, Options{Now: today, MaxAmplification: 1.5})
		if over := slices.Contains(ids(got.Findings), "FC504"); over != want {
			t.Errorf("%q: over the limit %v, want %v", fields, over, want)
		}
	}
}

// TestHighFloorNeedsAWaiver: the reader refuses a floor of more than ten, which a
// waiver of R-7 lifts; the gate names it.
func TestHighFloorNeedsAWaiver(t *testing.T) {
	const text = "dependencies: {payments: {owner: a, budget: {min_retries: 1073741824}}}\n"
	_, err := policyfile.Parse("policy.yaml", []byte(text))
	if f, ok := errors.AsType[*policyfile.Fault](err); !ok || f.Field != "budget.min_retries" || f.Rule != "R-7" {
		t.Errorf("without a waiver: %v, want budget.min_retries refused by R-7", err)
	}
	if got := ids(Run([]Source{parse(t, "policy.yaml", text)}, Options{Now: today}).Findings); !slices.Contains(got, "FC107") {
		t.Errorf("the gate found %v, want FC107", got)
	}
	if _, err := policyfile.Parse("policy.yaml", []byte(text+"waivers: [{rule: R-7, dependency: payments, reason: r, expires: 2999-01-01}]\n")); err != nil {
		t.Errorf("with a waiver: %v", err)
	}
}

// A service that does not own the retries of a dependency sends each call once.
func TestWorstCaseOfAnotherOwner(t *testing.T) {
	got := Run([]Source{parse(t, "p.yaml", "service: a\ndependencies:\n  b: {owner: gateway, strict: true, methods: [GET], max_retries: 5}\n")}, Options{Now: today})
	if l := got.Loads[0]; l.Attempts != 1 || l.PathWith != 1 || l.PathWithout != 1 || l.Duration > 5*time.Second {
		t.Errorf("got %+v", l)
	}
}

// TestNoInventedAttempt: where other software has no bound for one attempt, a call takes
// as long as its deadline, or has no bound, and never a figure of forbear's own.
func TestNoInventedAttempt(t *testing.T) {
	const config = `{"methodConfig": [{"name": [{"service": "a.B", "method": "GetC"}], %s "retryPolicy":
		{"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "5s", "backoffMultiplier": 2, "retryableStatusCodes": [14]}}], "retryThrottling": {"tokenRatio": 0.1, "maxTokens": 10}}`
	for _, tt := range []struct {
		timeout string
		longest time.Duration
		shown   string
	}{{`"timeout": "4s",`, 4 * time.Second, "4s"}, {`"timeout": "28s",`, 28 * time.Second, "28s"}, {"", math.MaxInt64, "unbounded"}} {
		got := Run([]Source{parse(t, "c.json", fmt.Sprintf(config, tt.timeout))}, Options{Now: today, MaxDuration: time.Second})
		if l := &got.Loads[0]; l.Duration != tt.longest || l.duration() != tt.shown {
			t.Errorf("%q: at longest %v, want %s", tt.timeout, l.duration(), tt.shown)
		}
		if found := ids(got.Findings); slices.Contains(found, "FC207") || slices.Contains(found, "FC208") || !slices.Contains(found, "FC505") {
			t.Errorf("%q: found %v", tt.timeout, found)
		}
	}
}

// TestNoInventedAttemptInMeshes: a route without any time-out may take any time.
func TestNoInventedAttemptInMeshes(t *testing.T) {
	const route = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{retries: {attempts: 2%s}, route: [{destination: {host: a}}]}]}\n"
	for extra, want := range map[string]string{"": "unbounded", ", perTryTimeout: 2s": "6.075s"} {
		got := Run([]Source{parse(t, "vs.yaml", fmt.Sprintf(route, extra))}, Options{Now: today})
		if l := got.Loads[0].duration(); l != want {
			t.Errorf("%q: at longest %s, want %s", extra, l, want)
		}
	}
}
