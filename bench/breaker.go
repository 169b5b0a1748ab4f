package bench

import (
	"context"

	"github.com/forbear-go/forbear"
	"github.com/sony/gobreaker/v2"
)

const modGobreaker = "github.com/sony/gobreaker/v2"

// breakers returns peers around a function that succeeds: forbear with its
// breaker, its retry budget and its deadline at work, beside a breaker alone.
// All goroutines share the one breaker, as the callers of one dependency do.
func breakers() []Peer {
	ctx := requestContext()
	retryer := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog()))
	alone := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Name: "payments"})
	return []Peer{
		{Name: "forbear", Module: modForbear, Context: true, New: func() func() error {
			op := func(context.Context) error { return nil }
			return func() error { return retryer.Do(ctx, op) }
		}},
		{Name: "gobreaker", Module: modGobreaker, New: func() func() error {
			op := func() (any, error) { return nil, nil }
			return func() error {
				_, err := alone.Execute(op)
				return err
			}
		}},
	}
}
