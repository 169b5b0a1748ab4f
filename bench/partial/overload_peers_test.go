package main

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// overloadContenders are forbear with the zero Policy and the policies of
// failsafe-go v0.9.8 with what their builders come with, outer ones first, in the
// order of https://failsafe-go.dev/policies#composition-recommendations.
func overloadContenders() []contender {
	return []contender{
		{nameForbear, openZero(forbear.Policy{})},
		{"forbear, 20 at once", openZero(forbear.Policy{MaxConcurrent: 20})},
		{nameNone, func(rt http.RoundTripper, url string) (call, error) { return through(rt, url), nil }},
		{"failsafe-go: retry", openPolicies(retryAlone)},
		{"failsafe-go: retry and budget", openPolicies(func() []failsafe.Policy[*http.Response] {
			return []failsafe.Policy[*http.Response]{failsafehttp.NewRetryPolicyBuilder().WithBudget(budget.New()).Build()}
		})},
		{"failsafe-go: retry and limiter", openPolicies(func() []failsafe.Policy[*http.Response] {
			return append(retryAlone(), adaptivelimiter.NewWithDefaults[*http.Response]())
		})},
		// The queue of https://failsafe-go.dev/adaptive-limiter#usage.
		{"failsafe-go: retry, limiter, queue", openPolicies(func() []failsafe.Policy[*http.Response] {
			return append(retryAlone(), adaptivelimiter.NewBuilder[*http.Response]().WithQueueing(2, 3).Build())
		})},
		{"failsafe-go: hedge", openPolicies(func() []failsafe.Policy[*http.Response] {
			return []failsafe.Policy[*http.Response]{hedgepolicy.NewWithDelay[*http.Response](hedgeAfter)}
		})},
		{"failsafe-go: hedge and budget", openPolicies(func() []failsafe.Policy[*http.Response] {
			return []failsafe.Policy[*http.Response]{
				hedgepolicy.NewBuilderWithDelay[*http.Response](hedgeAfter).WithBudget(budget.New()).Build(),
			}
		})},
	}
}

// hedgeAfter has no default. It is above all that usual responses take, so that it
// costs nothing while nothing is slow.
const hedgeAfter = 2 * usual

func retryAlone() []failsafe.Policy[*http.Response] {
	return []failsafe.Policy[*http.Response]{failsafehttp.NewRetryPolicyBuilder().Build()}
}

func openPolicies(policies func() []failsafe.Policy[*http.Response]) func(http.RoundTripper, string) (call, error) {
	return func(rt http.RoundTripper, url string) (call, error) {
		return through(failsafehttp.NewRoundTripper(rt, policies()...), url), nil
	}
}

func openZero(p forbear.Policy) func(http.RoundTripper, string) (call, error) {
	return func(rt http.RoundTripper, url string) (call, error) {
		r, err := forbear.New("dependency", p, forbear.WithoutLog())
		if err != nil {
			return nil, err
		}
		return through(httpretry.NewTransport(rt, r), url), nil
	}
}
