package httpretry

import (
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/waitform"
)

// readWait reads a wait in the given form.
func readWait(form string, value string, h http.Header, now time.Time) (time.Duration, bool) {
	switch form {
	case waitform.Seconds:
		return decimal(value, time.Second)
	case waitform.Milliseconds:
		return decimal(value, time.Millisecond)
	case waitform.HTTPDate:
		date, ok := parseDate(value, now)
		return until(date, ok, h, now)
	case waitform.Unix:
		return epoch(value, h, now, time.Second)
	case waitform.RFC3339:
		return rfc3339(value, h, now)
	case waitform.Duration:
		return goDuration(value)
	}
	return anyForm(value, h, now)
}

// anyForm reads a wait whose form its header does not tell, as the resets of rate
// limits, which vendors fill in in five ways: seconds from now, seconds since 1970,
// milliseconds since 1970, RFC 3339, and 6m0s. The size tells the numbers apart.
func anyForm(value string, h http.Header, now time.Time) (time.Duration, bool) {
	const (
		epochSeconds = 100_000_000     // below: a delta of up to three years
		epochMillis  = 100_000_000_000 // below: a date up to the year 5138
	)
	raw, ok := decimal(value, time.Millisecond) // the unit only carries the number
	switch n := raw.Milliseconds(); {
	case !ok:
	case raw == forever:
		return forever, true
	case n < epochSeconds:
		return decimal(value, time.Second)
	case n < epochMillis:
		return epoch(value, h, now, time.Second)
	default:
		return epoch(value, h, now, time.Millisecond)
	}
	if wait, ok := goDuration(value); ok {
		return wait, true
	}
	if wait, ok := rfc3339(value, h, now); ok {
		return wait, true
	}
	date, ok := parseDate(value, now)
	return until(date, ok, h, now)
}

// epoch reads a number of units since 1970.
func epoch(value string, h http.Header, now time.Time, unit time.Duration) (time.Duration, bool) {
	since, ok := decimal(value, unit)
	if since == forever {
		return forever, ok
	}
	return until(time.Unix(0, 0).Add(since), ok, h, now)
}

// rfc3339 reads a date as Anthropic, Jira and Vimeo send it.
func rfc3339(value string, h http.Header, now time.Time) (time.Duration, bool) {
	date, err := time.Parse(time.RFC3339, strings.Trim(value, " \t"))
	return until(date, err == nil, h, now)
}

// units are those of time.Duration, and days, from the longest name on.
var units = [...]struct {
	name string
	unit time.Duration
}{
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
	{"\u00b5s", time.Microsecond}, // the micro sign, and the letter mu
	{"\u03bcs", time.Microsecond},
	{"ns", time.Nanosecond},
	{"d", 24 * time.Hour},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
}

// goDuration reads what Go servers write for a time.Duration, such as 6m0s or 7.66s.
// time.ParseDuration would take signs, and cannot tell a wait beyond all bounds from
// one that cannot be read.
func goDuration(value string) (sum time.Duration, ok bool) {
	rest := strings.Trim(value, " \t")
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end < 0 {
			return 0, false // a number without a unit
		}
		part, known := time.Duration(0), false
		for _, u := range units {
			if tail, cut := strings.CutPrefix(rest[end:], u.name); cut {
				part, known = decimal(rest[:end], u.unit)
				rest = tail
				break
			}
		}
		if !known {
			return 0, false
		}
		sum, ok = duration.Sum(sum, part), true
	}
	return sum, ok
}
