package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/avast/retry-go/v5"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/sony/gobreaker/v2"
)

// openFailsafe is failsafe-go with what its builders come with: two retries
// without a wait, 20 % of retries among what is under way but three at least, and
// a breaker that one failure opens for a minute. What a failure is must be said:
// to its breaker a 503 is none.
func openFailsafe(rt http.RoundTripper, url string) (call, error) {
	return through(failsafehttp.NewRoundTripper(rt,
		failsafehttp.NewRetryPolicyBuilder().WithBudget(budget.New()).Build(),
		circuitbreaker.NewBuilder[*http.Response]().HandleIf(failed).Build(),
	), url), nil
}

// openTunedFailsafe is failsafe-go with the options that its guides show, set to
// forbear's figures: three retries with backoff, and a breaker that opens when
// half of at least 20 attempts of a minute failed, for 30 s.
func openTunedFailsafe(rt http.RoundTripper, url string) (call, error) {
	return through(failsafehttp.NewRoundTripper(rt,
		failsafehttp.NewRetryPolicyBuilder().WithBudget(budget.New()).
			WithBackoff(50*time.Millisecond, 30*time.Second).WithMaxRetries(3).Build(),
		circuitbreaker.NewBuilder[*http.Response]().HandleIf(failed).
			WithFailureRateThreshold(0.5, 20, time.Minute).WithDelay(30*time.Second).Build(),
	), url), nil
}

func failed(resp *http.Response, err error) bool {
	return err != nil || resp != nil && (resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests)
}

// openGobreaker is gobreaker inside retry-go, so that the breaker sees every
// attempt, both with their defaults: open for a minute after more than five
// failures in a row; ten attempts, waits from 100 ms on. One thing is not
// retry-go's default: it does not retry what the breaker refuses, on which it
// would spend the better part of a minute.
func openGobreaker(rt http.RoundTripper, url string) (call, error) {
	client := &http.Client{Transport: rt}
	breaker := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Name: "dependency"})
	retrier := retry.New(retry.RetryIf(func(err error) bool {
		return !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests)
	}))
	return func(ctx context.Context) bool {
		return retrier.Do(func() error {
			_, err := breaker.Execute(func() (int, error) { return good(attempt(ctx, client, url)) })
			return err
		}) == nil
	}, nil
}

// good makes an error of every status but 200.
func good(status int, err error) (int, error) {
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return status, err
}
