// Package config holds the settings that analyzers read while they run.
package config

import "slices"

import "sync/atomic"

// Config is what a user can set. The zero value holds the defaults.
type Config struct {
	MaxAttempts int   // largest accepted number of attempts; 0 means 11
	Retryable   []int // statuses that may be retried although the standard says no
}

var current atomic.Pointer[Config]

// Set puts c in force. It must be called before any analysis runs.
func Set(c Config) { current.Store(&c) }

// Current returns the settings in force.
func Current() Config {
	c := Config{}
	if p := current.Load(); p != nil {
		c = *p
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 11
	}
	return c
}

// MayRetry reports whether status was allowed explicitly.
func (c Config) MayRetry(status int) bool {
	return slices.Contains(c.Retryable, status)
}
