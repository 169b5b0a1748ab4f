// Package spread says how far above a server's wait a retry may come. A crowd
// that was told "45" would otherwise return as a crowd after 45 seconds.
package spread

import (
	"math"
	"time"
)

const (
	// Share is how much of the server's wait is laid on top of it by default.
	Share = 0.1
	// Max bounds the spread, whatever the share: the server's wait is a promise
	// of when it will be well, not of how long it can be spared.
	Max = 5 * time.Second
)

// Over returns the width of the spread above a server's wait: a share of it, at
// most [Max].
func Over(wait time.Duration, share float64) time.Duration {
	return time.Duration(math.Round(min(float64(wait)*share, float64(Max))))
}
