package httpretry

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// forever is what a wait too large for a Duration saturates to. It fits into no
// deadline, so such a call fails at once.
const forever = time.Duration(math.MaxInt64)

// retryAfter reads the two forms of RFC 9110 section 10.2.3: seconds, or a date.
func retryAfter(value string, h http.Header, now time.Time) (time.Duration, bool) {
	if d, ok := decimal(value, time.Second); ok {
		return d, true
	}
	date, ok := parseDate(value, now)
	return until(date, ok, h, now)
}

// until returns how long it is to a date by the server's clock; 0 for one gone by.
func until(date time.Time, ok bool, h http.Header, now time.Time) (time.Duration, bool) {
	if !ok {
		return 0, false
	}
	return max(date.Sub(clock(h, now)), 0), true
}

// clock returns the time of the response by the server's own clock, against
// which its dates are read, so that skew cancels out; without a readable Date,
// our own.
func clock(h http.Header, now time.Time) time.Time {
	if sent, ok := parseDate(h.Get("Date"), now); ok {
		return sent
	}
	return now
}

// decimal reads digits with an optional fraction, as a multiple of unit,
// rounded up to a millisecond. No sign, exponent, separator or unit is
// accepted. Fractions are a practice, not the standard.
func decimal(value string, unit time.Duration) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	whole, fraction, dotted := strings.Cut(value, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > int64(forever/unit) {
		return forever, true
	}
	d := time.Duration(n) * unit
	if dotted {
		part, err := strconv.ParseFloat("0."+fraction, 64)
		if err != nil {
			return 0, false
		}
		d += time.Duration(math.Ceil(part*float64(unit/time.Millisecond))) * time.Millisecond
		if d < 0 {
			return forever, true
		}
	}
	return d, true
}

// digits reports whether s is a number as the grammars have it: strconv would take
// a sign and underscores too.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// The three forms of a date that RFC 9110 section 5.6.7 makes recipients
// accept: IMF-fixdate, RFC 850, and asctime, whose day may be padded with a
// space or written in two digits.
const (
	layoutRFC850   = "Monday, 02-Jan-06 15:04:05 GMT"
	layoutAsctime2 = "Mon Jan 02 15:04:05 2006"
)

// dateLayouts are tried in turn: the first is the one that servers must send.
var dateLayouts = [...]string{http.TimeFormat, layoutRFC850, time.ANSIC, layoutAsctime2}

// parseDate reads an HTTP date strictly, by the clock of now where the form leaves
// the century open.
func parseDate(value string, now time.Time) (time.Time, bool) {
	value = strings.Trim(value, " \t")
	leap := time.Duration(0)
	if strings.Contains(value, ":60 ") { // a leap second is valid; time.Parse knows none
		value, leap = strings.Replace(value, ":60 ", ":59 ", 1), time.Second
	}
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, value)
		if err != nil || !spelled(t, layout, value) {
			continue
		}
		if layout == layoutRFC850 {
			t = century(t, now)
		}
		return t.Add(leap), true
	}
	return time.Time{}, false
}

// spelled reports whether value is written as the grammar has it: time.Parse
// also takes fractions, hours of one digit and any case. A wrong day of the
// week is let pass; the date is clear without it.
func spelled(t time.Time, layout, value string) bool {
	day, rest, _ := strings.Cut(value, " ")
	_, want, _ := strings.Cut(t.Format(layout), " ")
	if rest != want {
		return false
	}
	day = strings.TrimSuffix(day, ",")
	for d := range time.Saturday + 1 {
		if name := d.String(); day == name || day == name[:3] {
			return true
		}
	}
	return false
}

// century places a two-digit year: one that seems more than 50 years ahead is
// the most recent year in the past with the same digits.
func century(t, now time.Time) time.Time {
	year := now.Year() - now.Year()%100 + t.Year()%100 + 100
	limit := now.AddDate(50, 0, 0)
	for {
		placed := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
		if !placed.After(limit) {
			return placed
		}
		year -= 100
	}
}
