package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
		return fmt.Errorf("%w: the query cannot be parsed: write special characters as %%XX", errBadRequest)
	}
	allowed := q[rt.method+" "+rt.path]
	for _, name := range slices.Sorted(maps.Keys(query)) {
		i := slices.IndexFunc(allowed, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("%w: unknown parameter %.40q%s", errBadRequest, name, instead(name, allowed))
		case !allowed[i].list && len(query[name]) > 1:
			return fmt.Errorf("%w: %s is given %d times: want one", errBadRequest, name, len(query[name]))
		case len(query[name]) > maxPage:
			return fmt.Errorf("%w: %s is given %d times: want at most %d", errBadRequest, name, len(query[name]), maxPage)
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
		return ": this operation has none"
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
			return fmt.Errorf("%w: %s has control characters, or is not UTF-8", errBadRequest, name)
		}
	}
	return nil
}
