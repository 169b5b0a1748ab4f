package policyfile

import (
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration as policy files have it: as [time.ParseDuration],
// and whole days, alone, such as 8d. A day is 24 hours here.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		const most = 100_000 // far from an overflow
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= most {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(s)
}

// FormatDuration writes a duration as people do: 2m and not 2m0s.
// [ParseDuration] reads it back.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
