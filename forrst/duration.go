package forrst

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Duration is a length of time on the wire: {"value": 5, "unit": "second"}.
// The protocol has no fractions.
type Duration struct {
	Value int64  `json:"value"`
	Unit  string `json:"unit"`
}

// units are the protocol's, in the singular. Its own documents differ by place
// (second and minute; up to day; from millisecond): this is their union.
var units = map[string]time.Duration{
	"millisecond": time.Millisecond,
	"second":      time.Second,
	"minute":      time.Minute,
	"hour":        time.Hour,
	"day":         24 * time.Hour,
}

// DurationOf returns d in the largest unit that holds it exactly. What is
// below a millisecond is rounded up: a wait is never announced as shorter than
// it is. A negative d counts as 0.
func DurationOf(d time.Duration) Duration {
	// A past moment, such as a maintenance that is over, means now.
	d = max(d, 0)
	for _, name := range [...]string{"day", "hour", "minute", "second"} {
		if u := units[name]; d > 0 && d%u == 0 {
			return Duration{int64(d / u), name}
		}
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	if ms == 0 {
		return Duration{0, "second"}
	}
	return Duration{int64(ms), "millisecond"}
}

// Wait returns d as a time.Duration. ok is false for a negative value and for
// an unknown unit. What a time.Duration cannot hold saturates, and so fits into
// no deadline.
func (d Duration) Wait() (wait time.Duration, ok bool) {
	unit, ok := units[d.Unit]
	switch {
	case !ok || d.Value < 0:
		return 0, false
	case d.Value > math.MaxInt64/int64(unit):
		return math.MaxInt64, true
	}
	return time.Duration(d.Value) * unit, true
}

// readDuration reads a duration leniently: whatever is not an object with a
// whole, non-negative value and a known unit is absent.
func readDuration(raw json.RawMessage) (wait time.Duration, ok bool) {
	m, ok := members(raw)
	if !ok {
		return 0, false
	}
	var unit string
	if json.Unmarshal(m["unit"], &unit) != nil {
		return 0, false
	}
	value, ok := whole(m["value"])
	if !ok {
		return 0, false
	}
	return Duration{value, unit}.Wait()
}

// whole reads a non-negative integer literal. One beyond int64 saturates: an
// absurd wait must not turn into none.
func whole(raw json.RawMessage) (int64, bool) {
	if len(raw) == 0 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return math.MaxInt64, true
	}
	return n, true
}

// members reads the members of a JSON object, by their exact names.
func members(raw json.RawMessage) (m map[string]json.RawMessage, ok bool) {
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil || m == nil {
		return nil, false
	}
	return m, true
}
