package retry

import (
	"context"
	"time"
)

type Backoff interface{ Next() (time.Duration, bool) }

func NewConstant(d time.Duration) Backoff { return nil }

func NewExponential(d time.Duration) Backoff { return nil }

func WithJitterPercent(p uint64, b Backoff) Backoff { return b }

func WithMaxRetries(n uint64, b Backoff) Backoff { return b }

func Do(ctx context.Context, b Backoff, f func(context.Context) error) error { return f(ctx) }

func RetryableError(err error) error { return err }
