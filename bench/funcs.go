package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	retrygo "github.com/avast/retry-go/v5"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	"github.com/cenkalti/backoff/v7"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/googleapis/gax-go/v2"
	"github.com/sethvargo/go-retry"
)

// Module paths of the peers.
const (
	modForbear   = "github.com/forbear-go/forbear"
	modRetryGo   = "github.com/avast/retry-go/v5"
	modBackoff   = "github.com/cenkalti/backoff/v7"
	modGoRetry   = "github.com/sethvargo/go-retry"
	modGax       = "github.com/googleapis/gax-go/v2"
	modFailsafe  = "github.com/failsafe-go/failsafe-go"
	modAWS       = "github.com/aws/aws-sdk-go-v2"
	modRetryable = "github.com/hashicorp/go-retryablehttp"
)

// funcs returns the peers around a plain function that fails the given number
// of times.
func funcs(failures int) []Peer {
	ctx := requestContext()
	return []Peer{
		{Name: "no library", Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			return func() (err error) {
				for range 3 {
					if err = op(ctx); err == nil {
						break
					}
				}
				return err
			}
		}},
		forbearFuncs("forbear", failures, ctx, watching, forbear.WithoutLog()),
		forbearFuncs("forbear, no breaker", failures, ctx, unbroken, forbear.WithoutLog()),
		{Name: "forbear, bare", Module: modForbear, Context: true, New: func() func() error {
			return forbearFuncs("", failures, deadlineContext(), unbroken, forbear.WithoutLog()).New()
		}},
		forbearFuncs("forbear, logging JSON", failures, ctx, watching, forbear.WithObserver(
			forbear.LogObserver(slog.New(slog.NewJSONHandler(io.Discard, nil)), nil))),
		{Name: "retry-go, built once", Module: modRetryGo, New: func() func() error {
			op := flaky(failures, errFlaky)
			noContext := func() error { return op(context.Background()) }
			r := retrygo.New(retrygo.Attempts(3), retrygo.Delay(0), retrygo.MaxJitter(0), retrygo.DelayType(retrygo.FixedDelay))
			return func() error { return r.Do(noContext) }
		}},
		{Name: "retry-go", Module: modRetryGo, Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			opts := []retrygo.Option{retrygo.Attempts(3), retrygo.Delay(0), retrygo.MaxJitter(0), retrygo.DelayType(retrygo.FixedDelay)}
			return func() error {
				return retrygo.New(append(opts[:len(opts):len(opts)], retrygo.Context(ctx))...).Do(func() error { return op(ctx) })
			}
		}},
		{Name: "backoff", Module: modBackoff, Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			return func() error {
				_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, op(ctx) },
					backoff.WithBackOff(&backoff.ZeroBackOff{}), backoff.WithMaxTries(3))
				return err
			}
		}},
		{Name: "go-retry", Module: modGoRetry, Context: true, New: func() func() error {
			op := flaky(failures, retry.RetryableError(errFlaky))
			return func() error {
				// A Backoff keeps state: each call needs a new one.
				return retry.Do(ctx, retry.WithMaxRetries(2, retry.NewConstant(1)), op)
			}
		}},
		{Name: "gax", Module: modGax, Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			call := func(ctx context.Context, _ gax.CallSettings) error { return op(ctx) }
			opt := gax.WithRetry(func() gax.Retryer {
				return gax.OnErrorFunc(gax.Backoff{Initial: 1, Max: 1}, func(err error) bool { return errors.Is(err, errFlaky) })
			})
			return func() error { return gax.Invoke(ctx, call, opt) }
		}},
		{Name: "gax, with a timeout", Module: modGax, Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			call := func(ctx context.Context, _ gax.CallSettings) error { return op(ctx) }
			opt := gax.WithRetry(func() gax.Retryer {
				return gax.OnErrorFunc(gax.Backoff{Initial: 1, Max: 1}, func(err error) bool { return errors.Is(err, errFlaky) })
			})
			return func() error { // as much as forbear gives a call
				ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				return gax.Invoke(ctx, call, opt)
			}
		}},
		{Name: "failsafe-go", Module: modFailsafe, Context: true, New: func() func() error {
			op := flaky(failures, errFlaky)
			ex := failsafe.With(retrypolicy.NewBuilder[any]().WithMaxRetries(2).Build())
			return func() error { return ex.WithContext(ctx).Run(func() error { return op(ctx) }) }
		}},
		{Name: "aws, standard mode", Module: modAWS, Context: true, New: func() func() error {
			return awsCall(ctx, awsStandard(ratelimit.None), flaky(failures, errFlaky))
		}},
	}
}

// forbearFuncs has a budget that never refuses, and waits of at most 2 ns.
func forbearFuncs(name string, failures int, ctx context.Context, b breaker.Policy, opts ...forbear.Option) Peer {
	r := forbear.Must(forbear.New("bench", forbear.Policy{Backoff: forbear.Backoff{Base: 1}, Breaker: b}, append(opts, forbear.WithBudget(generous()))...))
	return Peer{Name: name, Module: modForbear, Context: true, New: func() func() error {
		op := flaky(failures, forbear.Retryable(errFlaky, forbear.Hint{NoBackoff: true}))
		return func() error { return r.Do(ctx, op) }
	}}
}

var (
	// watching keeps its books and does not open: two of three attempts fail
	// in these scenarios.
	watching = breaker.Policy{FailureRate: 1}
	// unbroken is for equal terms with peers that have no breaker. Bare is that
	// under a caller's deadline: what they do not have either is a time limit.
	unbroken = breaker.Policy{Disabled: true}
)

// generous returns the default kind of budget with an allowance that no
// benchmark uses up.
func generous() budget.Budget {
	return budget.NewRatio(budget.Policy{Ratio: budget.DefaultRatio, Window: budget.DefaultWindow, MinRetries: 1 << 40})
}

// awsStandard returns the SDK's standard retryer without waits, for any error.
func awsStandard(limiter awsretry.RateLimiter) aws.Retryer {
	return awsretry.NewStandard(func(o *awsretry.StandardOptions) {
		o.MaxAttempts = 3
		o.RateLimiter = limiter
		o.Backoff = awsretry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		o.Retryables = append(o.Retryables, awsretry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			return aws.BoolTernary(errors.Is(err, errFlaky))
		}))
	})
}

// awsCall runs op under the SDK's attempt middleware, which is the only public
// form of its loop.
func awsCall(ctx context.Context, r aws.Retryer, op func(context.Context) error) func() error {
	m := awsretry.NewAttemptMiddleware(r, func(v any) any { return v })
	next := middleware.FinalizeHandlerFunc(func(ctx context.Context, _ middleware.FinalizeInput) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
		return out, md, op(ctx)
	})
	return func() error {
		_, _, err := m.HandleFinalize(ctx, middleware.FinalizeInput{}, next)
		return err
	}
}
