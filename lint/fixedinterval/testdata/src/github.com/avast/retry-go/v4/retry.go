package retry

import "time"

type Config struct{}

type Option func(*Config)

type DelayTypeFunc func(n uint, err error, c *Config) time.Duration

func FixedDelay(uint, error, *Config) time.Duration { return 0 }

func BackOffDelay(uint, error, *Config) time.Duration { return 0 }

func RandomDelay(uint, error, *Config) time.Duration { return 0 }

func FullJitterBackoffDelay(uint, error, *Config) time.Duration { return 0 }

func CombineDelay(...DelayTypeFunc) DelayTypeFunc { return nil }

func DelayType(DelayTypeFunc) Option { return nil }

func Attempts(n uint) Option { return nil }

func Do(f func() error, opts ...Option) error { return f() }
