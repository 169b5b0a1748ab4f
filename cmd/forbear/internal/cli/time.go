package cli

import (
	"errors"
	"time"
)

// TimeFlag reads a time, or an age before now, for [flag.FlagSet.Func]: "since 24h" is
// what an operator means at three in the morning.
func TimeFlag(t *time.Time) func(string) error {
	return func(v string) error {
		if age, err := time.ParseDuration(v); err == nil {
			*t = time.Now().Add(-age)
			return nil
		}
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return errors.New("want an RFC 3339 time such as 2026-03-01T12:00:00Z, or an age such as 24h")
		}
		*t = at
		return nil
	}
}
