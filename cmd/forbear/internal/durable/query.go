package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/nearest"
)

// queries are the parameters that the queries of each operation may have, as
// openapi.json has them. A misspelt one is refused: passed over, it would show, or send
// again, too much.
type queries map[string][]parameter // by method and path

// parameter is one of them. Lists may be there several times.
type parameter struct {
	name string
	list bool
}

// readQueries reads the description of the API.
func readQueries() (queries, error) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Schema   struct{ Type string }
			}
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		return nil, err
	}
	q := queries{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				if p.In == "query" {
					at := strings.ToUpper(method) + " " + path
					q[at] = append(q[at], parameter{p.Name, p.Schema.Type == "array"})
				}
			}
		}
	}
	return q, nil
}

// check refuses a query with a parameter that the operation does not have, or with
// two values where one would be passed over.
func (q queries) check(r *http.Request, rt route) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query cannot be read: want %%XX for what is special in it", errBadRequest)
	}
	allowed := q[rt.method+" "+rt.path]
	for _, name := range slices.Sorted(maps.Keys(query)) {
		i := slices.IndexFunc(allowed, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("%w: unknown parameter %.40q%s", errBadRequest, name, instead(name, allowed))
		case !allowed[i].list && len(query[name]) > 1:
			return fmt.Errorf("%w: %s is there %d times: want one", errBadRequest, name, len(query[name]))
		case len(query[name]) > maxPage:
			return fmt.Errorf("%w: %s is there %d times: want at most %d", errBadRequest, name, len(query[name]), maxPage)
		}
		if err := storable(name, query[name]...); err != nil {
			return err
		}
	}
	return nil
}

// instead says which parameters an operation has.
func instead(name string, allowed []parameter) string {
	var names []string
	for _, p := range allowed {
		names = append(names, p.name)
	}
	if len(names) == 0 {
		return ": this operation takes none"
	}
	return nearest.Hint(name, names, ": want "+cli.OneOf(names))
}

// checkPath refuses an id that no store could look for.
func checkPath(r *http.Request, rt route) error {
	_, last, _ := strings.Cut(rt.path, "{")
	name, _, ok := strings.Cut(last, "}")
	if !ok {
		return nil
	}
	return storable(name, r.PathValue(name))
}

// storable refuses what a database takes for an error of its own, and not for a text
// that it does not have.
func storable(name string, values ...string) error {
	for _, v := range values {
		if !utf8.ValidString(v) || strings.ContainsFunc(v, label.Control) {
			return fmt.Errorf("%w: %s has control characters, or is no UTF-8", errBadRequest, name)
		}
	}
	return nil
}

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
		return 0, fmt.Errorf("%w: after: want the next of an earlier page, got %.20q", errBadRequest, text)
	}
	return n, nil
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
