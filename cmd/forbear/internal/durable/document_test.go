package durable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/race"
)

// described is an operation as openapi.json has it.
type described struct {
	Parameters []struct {
		Name, In string
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]struct {
			Schema *rule `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]struct {
			Schema *rule `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

// rule is a schema, as far as openapi.json uses it.
type rule struct {
	Ref        string           `json:"$ref"`
	Type       any              `json:"type"` // a name, or a list of them
	Format     string           `json:"format"`
	Pattern    string           `json:"pattern"`
	Enum       []any            `json:"enum"`
	Required   []string         `json:"required"`
	Properties map[string]*rule `json:"properties"`
	Items      *rule            `json:"items"`
	AllOf      []*rule          `json:"allOf"`
	OneOf      []*rule          `json:"oneOf"`
	Additional json.RawMessage  `json:"additionalProperties"`
}

// rules are the schemas that others refer to.
type rules map[string]*rule

// faults returns where a value is not what a schema says. Fields that it does not know
// are faults: a client that is made from the document would not find them.
func (all rules) faults(r *rule, at string, v any) (list []string) {
	if r == nil {
		return nil
	}
	if r.Ref != "" {
		return all.faults(all[r.Ref[strings.LastIndexByte(r.Ref, '/')+1:]], at, v)
	}
	for _, part := range r.AllOf {
		list = append(list, all.faults(part, at, v)...)
	}
	if len(r.OneOf) > 0 && !slices.ContainsFunc(r.OneOf, func(o *rule) bool { return len(all.faults(o, at, v)) == 0 }) {
		list = append(list, at+" is none of its kinds")
	}
	if r.Enum != nil && !slices.Contains(r.Enum, v) {
		list = append(list, fmt.Sprintf("%s is %v", at, v))
	}
	if r.Type != nil && !slices.ContainsFunc(typesOf(r.Type), func(t string) bool { return isType(t, v) }) {
		return append(list, fmt.Sprintf("%s is no %v", at, r.Type))
	}
	switch v := v.(type) {
	case string:
		_, err := time.Parse(time.RFC3339, v)
		if r.Format == "date-time" && err != nil || r.Pattern != "" && !compiled(r.Pattern).MatchString(v) {
			list = append(list, fmt.Sprintf("%s is %q", at, v))
		}
	case []any:
		for i, item := range v {
			list = append(list, all.faults(r.Items, fmt.Sprintf("%s[%d]", at, i), item)...)
		}
	case map[string]any:
		for _, name := range r.Required {
			if _, ok := v[name]; !ok {
				list = append(list, at+" has no "+name)
			}
		}
		for name, inner := range v {
			var more rule
			switch {
			case r.Properties[name] != nil:
				list = append(list, all.faults(r.Properties[name], at+"."+name, inner)...)
			case len(r.Additional) > 0 && json.Unmarshal(r.Additional, &more) == nil:
				list = append(list, all.faults(&more, at+"."+name, inner)...)
			case r.Properties != nil:
				list = append(list, at+"."+name+" is not described")
			}
		}
	}
	return list
}

// patterns are those that the document has, compiled once: it is looked at thousands of
// times.
var patterns sync.Map

func compiled(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

func typesOf(v any) (names []string) {
	if name, ok := v.(string); ok {
		return []string{name}
	}
	for _, name := range v.([]any) {
		names = append(names, name.(string))
	}
	return names
}

func isType(name string, v any) bool {
	switch n := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && n == float64(int64(n))
	case string:
		return name == "string"
	case []any:
		return name == "array"
	default:
		return name == "object"
	}
}

// bodies are texts that are wrong for a schema, and some that are not.
func (all rules) bodies(r *rule) []string {
	list := []string{"", "null", "{", "[]", "[1", `"x"`, "{} {}", "{}", `{"no_such_field":1}`, "\xff", `{"a":"` + strings.Repeat("x", int(maxRequest(0))) + `"}`}
	if r.Ref != "" {
		r = all[r.Ref[strings.LastIndexByte(r.Ref, '/')+1:]]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		for _, v := range []string{"null", `"x"`, `"\u0000"`, "1.5", "-1", "true", `{"no_such_field":1}`, `["x",1]`, `"2026-99-01T00:00:00Z"`} {
			list = append(list, fmt.Sprintf("{%q:%s}", name, v))
		}
	}
	return list
}

// goWords are what no response may have of this program.
var goWords = regexp.MustCompile(`json:|durable\.|webhook\.|Go (struct|value)|\bEOF\b|strconv|reflect|SQLSTATE|SQLITE`)

// Whatever an operation is sent, by whomever: its response is one that openapi.json
// describes, and in words of the API.
func TestResponsesAreThoseOfTheDocument(t *testing.T) {
	race.TooSlow(t, "TestAPIIsGuarded and those of each operation call the API, too")
	databases(t, func(t *testing.T, database string) {
		s, stop := start(t, Options{Database: database, Token: "the operator's own token", Transport: roundTrip(func(r *http.Request) (*http.Response, error) { return answer(400), nil })})
		defer stop()
		w := newWrong(t, s)
		for _, last := range []bool{false, true} { // what deletes comes last
			for _, rt := range s.routes() {
				if last == (rt.method == http.MethodDelete) {
					w.operation(t, rt)
				}
			}
		}
		t.Logf("%d requests, by status: %v", w.sent, w.statuses)
	})
}

// Nor do the responses say less, or something else, where a key is missing.
func TestResponsesWithoutAKey(t *testing.T) {
	t.Parallel()
	race.TooSlow(t, "TestAPIIsGuarded and those of each operation call the API, too")
	databases(t, func(t *testing.T, database string) {
		s := newSealedWorld(t, database)
		w := &wrong{service: s.Service, sealed: true, rules: s.rules, statuses: map[int]int{}, callers: []string{""}, ids: map[string]string{
			"endpoints": "mine", "messages": "m2", "dead-letters": s.letter, "redrives": "none", "applications": "acme",
		}}
		if err := json.Unmarshal(openAPI, &struct {
			Paths *map[string]map[string]described
		}{&w.paths}); err != nil {
			t.Fatal(err)
		}
		for _, last := range []bool{false, true} {
			for _, rt := range s.routes() {
				if last == (rt.method == http.MethodDelete) && !strings.HasPrefix(rt.path, "/v1/tokens") { // from the first one on all others are 401
					w.operation(t, rt)
				}
			}
		}
		if w.statuses[503] == 0 {
			t.Error("nothing is refused")
		}
		t.Logf("%d requests, by status: %v", w.sent, w.statuses)
	})
}

// wrong sends what is wrong to a service.
type wrong struct {
	service  *Service
	rules    rules
	paths    map[string]map[string]described
	callers  []string // what they send as Authorization
	ids      map[string]string
	sealed   bool // some of that cannot be read
	sent     int
	statuses map[int]int
}

func newWrong(t *testing.T, s *Service) *wrong {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]described
		Components struct{ Schemas rules }
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	s.admission.reads, s.admission.changes = 1e9, 1e9 // each is refused for what it is
	root := "Bearer the operator's own token"
	do := func(method, path, body string) map[string]any {
		t.Helper()
		status, v := call(t, s, method, path, body, "Authorization", root)
		if status >= 300 {
			t.Fatalf("%s %s: %d %v", method, path, status, v)
		}
		return v
	}
	do("PUT", "/v1/applications/acme", `{}`)
	do("PUT", "/v1/endpoints/theirs", plain)
	do("PUT", "/v1/endpoints/mine", `{"url":"https://example.com/","application":"acme"}`)
	do("POST", "/v1/messages", `{"id":"m1","endpoints":["mine","theirs"],"payload":1}`)
	letter := waitLetters(t, s, 2)[0].ID
	job := do("POST", "/v1/redrives", `{"filter":{"ids":["none"]}}`)["id"].(string)
	return &wrong{
		service: s, rules: doc.Components.Schemas, paths: doc.Paths, statuses: map[int]int{},
		callers: []string{
			root, "", token(t, s, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root),
			token(t, s, `{"name":"board","scope":"read-only"}`, "Authorization", root),
		},
		ids: map[string]string{"endpoints": "mine", "messages": "m1", "dead-letters": letter, "redrives": job, "applications": "acme", "tokens": "none"},
	}
}

// operation sends all that is wrong to one operation.
func (w *wrong) operation(t *testing.T, rt route) {
	op := w.paths[rt.path][strings.ToLower(rt.method)]
	body := "{}"
	bodies := []string{""}
	for _, c := range op.RequestBody.Content {
		bodies = w.rules.bodies(c.Schema)
	}
	ids := []string{""}
	if before, _, ok := strings.Cut(rt.path, "{"); ok {
		known := w.ids[strings.Trim(strings.TrimPrefix(before, "/v1"), "/")]
		ids = []string{known, "theirs", "none", "cancel", "%2E%2E", ".", "a%2Fb", "%00", "%FF", "%C3%A4", strings.Repeat("x", 5000)}
	}
	queries := []string{"", "no_such_parameter=1", "%zz", "a=%00"}
	for _, p := range op.Parameters {
		if p.In == "query" {
			queries = append(queries, p.Name+"=%00", p.Name+"=x", p.Name+"=0", p.Name+"=1&"+p.Name+"=2", p.Name+"=%FF")
		}
	}
	for _, caller := range w.callers {
		for _, id := range ids {
			w.request(t, rt, op, caller, id, "", body)
		}
		for _, q := range queries {
			w.request(t, rt, op, caller, ids[0], q, body)
		}
		for _, b := range bodies {
			w.request(t, rt, op, caller, ids[0], "", b)
			if caller != w.callers[0] && b == "{}" {
				break // a body is read alike for all who may send one
			}
		}
		for _, h := range []string{"If-Match: x", `If-Match: "99"`, "If-None-Match: x", "If-None-Match: *", "Content-Type: text/plain", "X-Forbear-Actor: \x01"} {
			w.request(t, rt, op, caller, ids[0], "", body, h)
		}
	}
}

// placeholder is what a path has in place of an id.
var placeholder = regexp.MustCompile(`\{\w+\}`)

// request makes one request and holds its response to the document.
func (w *wrong) request(t *testing.T, rt route, op described, caller, id, query, body string, header ...string) {
	t.Helper()
	path := placeholder.ReplaceAllLiteralString(rt.path, id)
	r := httptest.NewRequest(rt.method, path+"?"+query, strings.NewReader(body))
	r.Host = "localhost"
	if caller != "" {
		r.Header.Set("Authorization", caller)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	w.service.Handler.ServeHTTP(rec, r)
	w.sent++
	w.statuses[rec.Code]++
	name := fmt.Sprintf("%s %.60s?%s %.60s %q", rt.method, path, query, body, header)
	want, ok := op.Responses[fmt.Sprint(rec.Code)]
	if !ok && id != "." { // which is no path of this operation
		t.Errorf("%s: the status is %d, which is not described: %s", name, rec.Code, rec.Body)
		return
	}
	kind := rec.Header().Get("Content-Type")
	if rec.Code < 400 {
		w.hold(t, name, want.Content[kind].Schema, kind, rec.Body.Bytes())
		return
	}
	unable := rec.Code >= 500 && !(w.sealed && bytes.Contains(rec.Body.Bytes(), []byte(`problem:unreadable"`)))
	if kind != "application/problem+json" || goWords.Match(rec.Body.Bytes()) || unable {
		t.Errorf("%s: %d, %s: %s", name, rec.Code, kind, rec.Body)
	}
	w.hold(t, name, w.rules["Problem"], kind, rec.Body.Bytes())
}

// hold compares a body with its schema.
func (w *wrong) hold(t *testing.T, name string, r *rule, kind string, body []byte) {
	t.Helper()
	if kind == "application/jsonl" || len(body) == 0 || r == nil {
		return
	}
	var v any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, fault := range w.rules.faults(r, "the body", v) {
		t.Errorf("%s: %s: %.300s", name, fault, body)
	}
}
