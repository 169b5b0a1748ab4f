package grpcwire

import (
	"math"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
)

// Stop is the pushback that asks a client not to retry.
const Stop = "-1"

// PushbackHint reads gRFC A6: one number of milliseconds takes the place of the first
// backoff and is a floor under later ones; a negative or unreadable one, or more than one,
// says stop. A6 waits that long; forbear adds [hint.Spread] to it, since a server that
// turns many calls away tells all of them the same.
func PushbackHint(values []string) forbear.Hint {
	if len(values) == 0 {
		return forbear.Hint{}
	}
	ms, err := strconv.Atoi(values[0])
	if len(values) > 1 || err != nil || ms < 0 {
		return forbear.Hint{Stop: true}
	}
	wait := time.Duration(math.MaxInt64)
	if ms <= math.MaxInt64/int(time.Millisecond) {
		wait = time.Duration(ms) * time.Millisecond
	}
	h := floor(wait)
	h.NoBackoff = true
	return h
}

// FormatPushback returns a wait as a pushback, rounded up: an early retry would be
// refused again.
func FormatPushback(wait time.Duration) string {
	wait = max(wait, 0)
	ms := wait / time.Millisecond
	if wait%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10)
}

// floor returns the hint for a server's wait.
func floor(d time.Duration) forbear.Hint {
	return forbear.Hint{Floor: d, Spread: hint.Spread(d, hint.SpreadShare)}
}
