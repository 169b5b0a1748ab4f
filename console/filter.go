package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pageRows is how many rows a page has.
const pageRows = 50

// filter reads the named values of an address as the API has them in a query.
func filter(q url.Values, names ...string) (url.Values, error) {
	f := url.Values{}
	for _, name := range names {
		for _, text := range q[name] {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			if name == "since" || name == "until" {
				t, err := moment(text, time.Now())
				if err != nil {
					return nil, &problem{Status: http.StatusBadRequest, Detail: name + ": " + err.Error()}
				}
				text = t.UTC().Format(time.RFC3339Nano)
			}
			f.Add(name, text)
		}
	}
	return f, nil
}

// paged returns a filter with the page that an address asks for.
func paged(f, q url.Values) url.Values {
	ask := maps.Clone(f)
	ask.Set("limit", strconv.Itoa(pageRows))
	if after := q.Get("after"); after != "" {
		ask.Set("after", after)
	}
	return ask
}

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

// field is a part of a filter.
type field struct{ Name, Value string }

// fields returns the parts of a filter by their names.
func fields(f url.Values) (list []field) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		for _, value := range f[name] {
			list = append(list, field{name, value})
		}
	}
	return list
}
