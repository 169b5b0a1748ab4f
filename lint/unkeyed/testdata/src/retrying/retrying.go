// Package retrying calls a function until it says that it is done.
package retrying

import (
	"context"
	"math/rand/v2"
	"time"
)

type Plan struct {
	Base time.Duration
	Done func(attempt int) (bool, error)
}

func Until(ctx context.Context, p Plan) error {
	for n := 0; ; n++ {
		done, err := p.Done(n)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(p.Base << n)):
		}
	}
}
