package console

import (
	"fmt"
	"strings"
	"time"
)

// moment reads a time of a filter: a date, with or without a time, in UTC, or how long ago.
func moment(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, strings.TrimSuffix(text, " UTC")); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("want a time in UTC such as 2026-01-31 08:00, or how long ago, such as 24h, got %.40q", text)
}
