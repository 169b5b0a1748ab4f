// Package retry has the signatures of avast/retry-go.
package retry

import (
	"context"
	"time"
)

type (
	Config           struct{}
	Option           func(*Config)
	RetryableFunc    func() error
	RetryIfFunc      func(error) bool
	DelayTypeFunc    func(n uint, err error, config *Config) time.Duration
	RetryableFuncAny func() (any, error)
)

func Do(retryableFunc RetryableFunc, opts ...Option) error            { return retryableFunc() }
func Attempts(attempts uint) Option                                   { return nil }
func Delay(delay time.Duration) Option                                { return nil }
func MaxDelay(maxDelay time.Duration) Option                          { return nil }
func MaxJitter(maxJitter time.Duration) Option                        { return nil }
func DelayType(delayType DelayTypeFunc) Option                        { return nil }
func Context(ctx context.Context) Option                              { return nil }
func RetryIf(retryIf RetryIfFunc) Option                              { return nil }
func FixedDelay(_ uint, _ error, config *Config) time.Duration        { return 0 }
func BackOffDelay(n uint, _ error, config *Config) time.Duration      { return 0 }
func RandomDelay(_ uint, _ error, config *Config) time.Duration       { return 0 }
func CombineDelay(delays ...DelayTypeFunc) DelayTypeFunc              { return nil }
func FullJitterBackoffDelay(n uint, _ error, c *Config) time.Duration { return 0 }
