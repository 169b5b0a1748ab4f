package grpcwire

import (
	"math"
	"strconv"
	"time"
)

// maxDigits is how long the number of a grpc-timeout may be.
const maxDigits = 8

// units are those of a grpc-timeout, the finest first.
var units = [...]struct {
	letter byte
	length time.Duration
}{
	{'n', time.Nanosecond},
	{'u', time.Microsecond},
	{'m', time.Millisecond},
	{'S', time.Second},
	{'M', time.Minute},
	{'H', time.Hour},
}

// ParseTimeout reads a grpc-timeout that is there once: one to eight digits and a unit.
// One that is longer than a Duration can say is the longest there is.
func ParseTimeout(values []string) (time.Duration, bool) {
	if len(values) != 1 {
		return 0, false
	}
	value := values[0]
	last := len(value) - 1
	if last < 1 || last > maxDigits {
		return 0, false
	}
	var n int64
	for i := range last {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(value[i]-'0')
	}
	for _, u := range units {
		if u.letter != value[last] {
			continue
		}
		if n > math.MaxInt64/int64(u.length) {
			return math.MaxInt64, true
		}
		return time.Duration(n) * u.length, true
	}
	return 0, false
}

// FormatTimeout returns d as a grpc-timeout, rounded down to what eight digits can say
// and never to nothing: 0 is read as no time by some and as no limit by others.
func FormatTimeout(d time.Duration) string {
	if d <= 0 {
		return "1n"
	}
	const most = 99_999_999
	for _, u := range units {
		if n := d / u.length; n <= most {
			return strconv.FormatInt(int64(n), 10) + string(u.letter)
		}
	}
	return strconv.Itoa(most) + "H" // beyond any Duration
}
