package check

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/storm"
)

// TestSelfInflictedAsTheSimulatorSays: check warns of a breaker where the simulator, which
// runs the same partial failure, says that the breaker is the outage.
func TestSelfInflictedAsTheSimulatorSays(t *testing.T) {
	for name, p := range map[string]forbear.Policy{
		"default":            {},
		"lowest rate":        {Breaker: breaker.Policy{FailureRate: 0.25}},
		"one probe":          {Breaker: breaker.Policy{FailureRate: 0.25, Probes: 1, OpenFor: 5 * time.Second}},
		"three tenths":       {Breaker: breaker.Policy{FailureRate: 0.3}},
		"third":              {Breaker: breaker.Policy{FailureRate: 0.33}},
		"few calls":          {Breaker: breaker.Policy{FailureRate: 0.4, MinCalls: 5}},
		"short":              {Breaker: breaker.Policy{FailureRate: 0.35, WindowTime: 10 * time.Second}},
		"budget opens":       {Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}},
		"budget off":         {Breaker: breaker.Policy{OnBudget: breaker.BudgetIgnored}},
		"no retries":         {Disabled: true, Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}},
		"hasty":              {Breaker: breaker.Policy{OpenFor: 5 * time.Second, Probes: 1, SlowRate: 0.1}},
		"off":                {Breaker: breaker.Policy{Disabled: true, FailureRate: 0.25}},
		"consumer":           {Kind: forbear.Event},
		"consumer, lowest":   {Kind: forbear.Event, Breaker: breaker.Policy{FailureRate: 0.25}},
		"webhook, immediate": {Kind: forbear.Webhook, Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}},
		"health gate":        {Health: health.Policy{MinSuccess: 0.5}, Breaker: breaker.Policy{FailureRate: 0.25}},
	} {
		r := &run{}
		r.breaker(&policyfile.Dependency{Name: "payments", Policy: p})
		got := slices.Contains(ids(plain(r.findings)), "FC703")
		s, _ := storm.FindNamed("partial")
		s.Bin = storm.Duration(time.Second)
		s.Fleets[0].Client = storm.Client{Policy: &p, Baseline: storm.Baseline{Unchecked: true}}
		// At the edge, chance decides a single run.
		const seeds = 5
		harmed := 0
		for seed := range uint64(seeds) {
			s.Seed = seed + 1
			result, err := storm.Run(context.Background(), s, storm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if result.Summary.Verdict == storm.SelfInflicted {
				harmed++
			}
		}
		if want := harmed > seeds/2; got != want {
			t.Errorf("%s: warned %v, in the simulator %d of %d runs are self-inflicted", name, got, harmed, seeds)
		}
	}
}
