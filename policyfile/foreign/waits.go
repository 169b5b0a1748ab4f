package foreign

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// grow sets waits whose factor is the product's own: the first, and each factor times the
// one before, up to most; 0 sets no bound. The number of retries must be known by then.
func grow(d *policyfile.Dependency, first time.Duration, factor float64, most time.Duration) {
	wait(d, grows(first, factor, most))
	b := &d.Policy.Backoff
	b.Base, b.Cap = first, max(b.Cap, most, first)
}

// each is how long a product waits that always waits as long, for a message.
func each(wait time.Duration) any {
	if wait == 0 {
		return "equally long" // or not at all: what cannot be read is zero
	}
	return wait
}

// unbounded is for where nothing bounds one attempt: it may take as long as the call.
func unbounded(d *policyfile.Dependency) { d.Lacks = append(d.Lacks, "per_attempt") }

// isoTime matches durations of ISO 8601 without dates, as Java writes them.
var isoTime = regexp.MustCompile(`(?i)^PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?$`)

// javaTime reads a duration as Spring does: a number of milliseconds, a number with a
// unit, or ISO 8601.
func javaTime(s string) (time.Duration, bool) {
	if ms, err := strconv.ParseUint(s, 10, 62); err == nil {
		return saturated(float64(ms), time.Millisecond), true
	}
	if m := isoTime.FindStringSubmatch(s); m != nil && len(s) > 2 {
		return sum(m[1:], time.Hour, time.Minute, time.Second), true
	}
	if m := javaUnit.FindStringSubmatch(s); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		return saturated(v, map[string]time.Duration{
			"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
		}[m[2]]), true
	}
	return 0, false
}

var javaUnit = regexp.MustCompile(`^(\d+)\s*(ns|us|ms|s|m|h|d)$`)

// sum adds up numbers of units; "" counts as none.
func sum(numbers []string, units ...time.Duration) time.Duration {
	total := 0.0
	for i, unit := range units {
		v, _ := strconv.ParseFloat(numbers[i], 64)
		total += v * float64(unit)
	}
	return saturated(total, 1)
}

// saturated multiplies without an overflow.
func saturated(v float64, unit time.Duration) time.Duration {
	return time.Duration(min(v*float64(unit), math.MaxInt64/2))
}
