package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// queries are the parameters that the queries of each operation may have, as
// openapi.json has them. A misspelt one is refused: passed over, it would show, or send
// again, too much.
type queries map[string][]string // by method and path

// readQueries reads the description of the API.
func readQueries() (queries, error) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
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
					q[at] = append(q[at], p.Name)
				}
			}
		}
	}
	return q, nil
}

// check refuses a query with a parameter that the operation does not have.
func (q queries) check(r *http.Request, rt route) error {
	allowed := q[rt.method+" "+rt.path]
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%w: unknown parameter %.40q: want one of %q", errBadRequest, name, allowed)
		}
	}
	return nil
}
