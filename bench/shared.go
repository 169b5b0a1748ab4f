package bench

import (
	"context"

	retrygo "github.com/avast/retry-go/v5"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/forbear-go/forbear"
)

// shared returns the peers that have a retry budget, all goroutines under one
// of it. The budgets keep their books but are too large to refuse.
func shared(failures int) []Peer {
	ctx := requestContext()
	throttled := retrygo.New(retrygo.Attempts(3), retrygo.Delay(0), retrygo.MaxJitter(0), retrygo.DelayType(retrygo.FixedDelay),
		retrygo.WithFixedTokenBucketThrottle(retrygo.FixedTokenBucketThrottleConfig{MaxCapacity: 1 << 50}))
	budgeted := failsafe.With(retrypolicy.NewBuilder[any]().WithMaxRetries(2).
		WithBudget(budget.NewBuilder().WithMaxRate(1).WithMinConcurrency(1 << 20).Build()).Build())
	standard := awsStandard(ratelimit.NewTokenRateLimit(1 << 50))
	return []Peer{
		{Name: "no library", Context: true, New: funcs(failures)[0].New},
		forbearFuncs("forbear", failures, ctx, watching, forbear.WithoutLog()),
		forbearFuncs("forbear, no breaker", failures, ctx, unbroken, forbear.WithoutLog()),
		{Name: "retry-go, built once", Module: modRetryGo, New: func() func() error {
			op := flaky(failures, errFlaky)
			noContext := func() error { return op(context.Background()) }
			return func() error { return throttled.Do(noContext) }
		}},
		{Name: "failsafe-go", Module: modFailsafe, Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			return func() error { return budgeted.WithContext(ctx).Run(func() error { return op(ctx) }) }
		}},
		{Name: "aws, standard mode", Module: modAWS, Context: true, New: func() func() error {
			return awsCall(ctx, standard, flaky(failures, errFlaky))
		}},
	}
}
