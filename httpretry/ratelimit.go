package httpretry

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rateLimit reads the RateLimit field of the IETF draft, a list such as
// `"default";r=0;t=30`: the longest t of the items that have nothing left. An
// item without r counts as used up. Up to its seventh version the draft had one
// dictionary instead, `limit=100, remaining=0, reset=30`, which is still widely
// sent. Malformed fields are ignored, as the draft asks.
func rateLimit(value string) (d time.Duration, ok bool) {
	var older quota
	for item := range strings.SplitSeq(value, ",") {
		name, parameters, _ := strings.Cut(item, ";")
		if !older.read(name, "remaining", "reset") {
			return 0, false
		}
		var q quota
		for p := range strings.SplitSeq(parameters, ";") {
			if !q.read(p, "r", "t") {
				return 0, false
			}
		}
		if wait, used := q.wait(); used {
			d, ok = max(d, wait), true
		}
	}
	if wait, used := older.wait(); used {
		d, ok = max(d, wait), true
	}
	return d, ok
}

// quota is what is left of one limit, and for how many seconds it stays so.
type quota struct {
	remaining, reset int64
	known            bool // reset was there
}

// read takes "name=number" if the name is one of the two, and reports whether
// it could.
func (q *quota) read(text, remaining, reset string) bool {
	name, number, _ := strings.Cut(strings.Trim(text, " \t"), "=")
	if name != remaining && name != reset {
		return true
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !digits(number) {
		return false
	}
	if name == remaining {
		q.remaining = n
	} else {
		q.reset, q.known = n, true
	}
	return true
}

// wait returns how long the quota is used up; false when it is not, or when it
// does not say for how long.
func (q *quota) wait() (time.Duration, bool) {
	if q.remaining > 0 || !q.known {
		return 0, false
	}
	return decimal(strconv.FormatInt(q.reset, 10), time.Second)
}

// quotaLeft reports whether what remains of a limit is above zero. While it is, the
// end of the limit's window is no reason to wait.
func quotaLeft(remaining []string) bool {
	if len(remaining) == 0 {
		return false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(remaining[0]), 64)
	return err == nil && n > 0
}

// rateLimitReset reads X-RateLimit-Reset, which vendors fill in three ways:
// seconds from now, seconds since 1970, milliseconds since 1970. The size tells
// them apart.
func rateLimitReset(value string, h http.Header, now time.Time) (time.Duration, bool) {
	const (
		epochSeconds = 100_000_000     // below: a delta of up to three years
		epochMillis  = 100_000_000_000 // below: a date up to the year 5138
	)
	raw, ok := decimal(value, time.Millisecond) // the unit only carries the number
	if !ok {
		return 0, false
	}
	var at time.Time
	switch n := raw.Milliseconds(); {
	case raw == forever:
		return forever, true
	case n < epochSeconds:
		return decimal(value, time.Second)
	case n < epochMillis:
		at = time.Unix(n, 0)
	default:
		at = time.UnixMilli(n)
	}
	return max(at.Sub(clock(h, now)), 0), true // gone by: no wait
}
