package backoff

import "time"

type BackOff interface{ NextBackOff() time.Duration }

type ConstantBackOff struct{ Interval time.Duration }

func (b *ConstantBackOff) NextBackOff() time.Duration { return b.Interval }

func NewConstantBackOff(d time.Duration) *ConstantBackOff { return &ConstantBackOff{d} }

type ExponentialBackOff struct {
	InitialInterval     time.Duration
	RandomizationFactor float64
	MaxElapsedTime      time.Duration
}

func (b *ExponentialBackOff) NextBackOff() time.Duration { return b.InitialInterval }

func NewExponentialBackOff() *ExponentialBackOff { return &ExponentialBackOff{} }

func WithMaxRetries(b BackOff, n uint64) BackOff { return b }

func Retry(op func() error, b BackOff) error { return op() }
