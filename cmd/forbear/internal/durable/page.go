package durable

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// The items of one page of a list: by default, and at most.
const (
	usualPage = 100
	maxPage   = 1000
)

// page is a page of a list under its name. next is where the following page begins: behind
// the last item of a full page. "" means that this is the last page.
func page[T any](name string, list []T, limit int, where func(T) string) map[string]any {
	next := ""
	if len(list) == limit {
		next = where(list[limit-1])
	}
	return map[string]any{name: nonNil(list), "next": next}
}

// limitOf reads how many items a page may have.
func limitOf(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return usualPage, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPage {
		return 0, fmt.Errorf("%w: limit: want 1 to %d, got %.20q", errBadRequest, maxPage, text)
	}
	return limit, nil
}

// cursor is where a list goes on, as a client has it, and cursorOf its inverse.
func cursor(next int64) string {
	if next == 0 {
		return ""
	}
	return strconv.FormatInt(next, 10)
}

// pageOf reads where a page begins and how long it is.
func pageOf(q url.Values) (after int64, limit int, err error) {
	if limit, err = limitOf(q); err == nil {
		after, err = cursorOf(q.Get("after"))
	}
	return after, limit, err
}

func cursorOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%w: after: want next of an earlier page, got %.20q", errBadRequest, text)
	}
	return n, nil
}

// boolOf reads a parameter that is true or false. Another value is an error: "1" that is
// taken for no would look like an honest response.
func boolOf(q url.Values, name string) (bool, error) {
	switch v := q.Get(name); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%w: %s: want true or false, got %.20q", errBadRequest, name, v)
	}
}

// timesOf reads since and until, which are RFC 3339.
func timesOf(q url.Values) (since, until time.Time, err error) {
	for name, t := range map[string]*time.Time{"since": &since, "until": &until} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		if *t, err = time.Parse(time.RFC3339, v); err != nil {
			return since, until, fmt.Errorf("%w: %s: want an RFC 3339 time such as 2026-01-31T08:00:00Z, got %.40q", errBadRequest, name, v)
		}
	}
	return since, until, nil
}

// nonNil makes an empty list [] in JSON and not null, which clients would have to
// expect everywhere. Every list of the API goes through it.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
