package hint

import (
	"math"
	"time"
)

const (
	// SpreadShare is how much of the server's wait is laid on top of it by default.
	SpreadShare = 0.1
	// MaxSpread bounds the spread, whatever the share: the server's wait is a promise
	// of when it will be well, not of how long it can be spared.
	MaxSpread = 5 * time.Second
)

// Spread returns how far above a server's wait a retry may come, since a crowd that
// was given "45" would otherwise return as a crowd after 45 seconds: a share of it, at
// most [MaxSpread].
func Spread(wait time.Duration, share float64) time.Duration {
	return time.Duration(math.Round(min(float64(wait)*share, float64(MaxSpread))))
}
