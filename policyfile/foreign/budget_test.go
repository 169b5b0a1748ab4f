package foreign

import (
	"strings"
	"testing"
)

// What a budget of Envoy's holds the retries in flight to, there and in a DestinationRule.
func TestIntervals(t *testing.T) {
	envoy := func(budget string) string {
		return "virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a, timeout: 6s, retry_policy: {retry_on: connect-failure, num_retries: 2}}}, {match: {prefix: /b}, route: {cluster: a, timeout: 6s, retry_policy: {retry_on: connect-failure, num_retries: 2}}}]}]\nclusters: [{name: a, circuit_breakers: {thresholds: [{retry_budget: {" + budget + "}}]}}]\n"
	}
	istio := func(budget string) string {
		return istioService(toPayments+", timeout: 6s, retries: {attempts: 2, retryOn: connect-failure}") + "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: shop}\nspec: {host: payments, trafficPolicy: {retryBudget: {" + budget + "}}}\n"
	}
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"none", envoy("budget_percent: {value: 20}"), []string{"cannot R-7 : Envoy's retry budget is a share of the requests in flight, not of the requests of 30s: Envoy's budget_interval, from 1.39, counts"}, []string{"budget.interval"}},
		{"zero", envoy("budget_interval: 0s"), []string{"cannot R-7 : "}, []string{"budget.interval"}},
		{"longer than any retry", envoy("budget_interval: 30s"), []string{"2 R-7 budget.interval: 20% of all requests of 30s may be retries in flight. That does not bound short retries, and even if each lasts 6s they may be 100% of the requests: leave the interval out"}, []string{"cannot R-7"}},
		{"longer than some", envoy("budgetInterval: 1.5s, budgetPercent: {value: 10}"), []string{"R-7 budget.interval: 10% of all requests of 1.5s may be retries in flight. That is over 20% of the requests if a retry lasts less than 750ms: leave the interval out"}, nil},
		{"next to nothing", envoy("budget_interval: 0.001s"), []string{"note 2: a: an interval of 1ms is shorter than a request, so only the minimum of retries in flight applies: leave it out"}, []string{"budget.interval"}},
		{"a template's", envoy("budget_interval: $T"), []string{`note 2: a: "$T" is not a duration`}, []string{"budget.interval", "cannot R-7"}},
		{"a slip", envoy("budget_intervall: 30s"), []string{"note 2: a: budget_intervall is not in the API, and is not read: did you mean budget_interval?"}, nil},
		{"Istio's", istio("percent: 20, budgetInterval: 30s"), []string{"R-7 budget.interval: 20% of all requests of 30s may be retries in flight"}, nil},
		{"Istio's none", istio("percent: 20"), []string{"cannot R-7 : Envoy's retry budget is a share of the requests in flight, not of the requests of 30s: Istio's budgetInterval, from 1.31, counts"}, []string{"percent"}},
		{"Istio's slip", istio("percent: 20, budgetIntervall: 30s"), []string{"budgetIntervall is not in the API, and is not read: did you mean budgetInterval?"}, nil},
		{"Istio's old default", istio("minRetryConcurrency: 2"), []string{"note 12: payments: a retryBudget without percent means 0.2% instead of 20% in Istio 1.27, 1.28 before 1.28.6 and 1.29 before 1.29.2: set percent"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := said("r.yaml", tt.text)
			holds(t, got, tt.want, tt.not)
			// Of a budget that two routes share once.
			if n := strings.Count(got, "leave "); n > 1 {
				t.Errorf("%d times in\n%s", n, got)
			}
		})
	}
}
