package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

func readSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// checkSchema reports where a report does not keep to the schema, or has a field that the
// schema does not describe.
func checkSchema(t *testing.T, report string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(report), &v); err != nil {
		t.Fatal(err)
	}
	all := readSchema(t)
	for _, fault := range all.faults(all, "report", v) {
		t.Error(fault)
	}
}

// faults judges a value by the keywords that the schema uses, and panics at others.
func (s schema) faults(all schema, at string, v any) (list []string) {
	fault := func(format string, args ...any) { list = append(list, at+": "+fmt.Sprintf(format, args...)) }
	fields, _ := v.(map[string]any)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch rule := s[keyword]; keyword {
		case "$schema", "$id", "$defs", "title", "description":
		case "$ref":
			name := strings.TrimPrefix(rule.(string), "#/$defs/")
			list = append(list, schema(all["$defs"].(map[string]any)[name].(map[string]any)).faults(all, at, v)...)
		case "type":
			if !isType(rule, v) {
				fault("%v is not of type %v", v, rule)
			}
		case "enum":
			if !slices.Contains(rule.([]any), v) {
				fault("%v is not one of %v", v, rule)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(text) {
				fault("%q does not match %s", text, rule)
			}
		case "required":
			for _, name := range rule.([]any) {
				if _, ok := fields[name.(string)]; !ok {
					fault("%s is missing", name)
				}
			}
		case "properties":
			for name, field := range fields {
				if part, ok := rule.(map[string]any)[name]; ok {
					list = append(list, schema(part.(map[string]any)).faults(all, at+"."+name, field)...)
				} else {
					fault("%s is not in report.schema.json", name)
				}
			}
		case "items":
			items, _ := v.([]any)
			for i, item := range items {
				list = append(list, schema(rule.(map[string]any)).faults(all, fmt.Sprintf("%s[%d]", at, i), item)...)
			}
		default:
			panic("the keyword " + keyword + " is not understood")
		}
	}
	return list
}

// isType reports whether a value is of a type, or of one in a list.
func isType(rule, v any) bool {
	if list, ok := rule.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return isType(one, v) })
	}
	is := ""
	switch v := v.(type) {
	case nil:
		is = "null"
	case string:
		is = "string"
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	case float64:
		if is = "number"; rule == "integer" && v == float64(int64(v)) {
			is = "integer"
		}
	}
	return is == rule
}

// TestSchemaKnowsEachCase: the id of each case is one that the schema describes, and a report
// with advice keeps to it. TestFormats has one with a law.
func TestSchemaKnowsEachCase(t *testing.T) {
	r := unkeyed()
	r.Protocol = "http"
	for _, c := range slices.Concat(cases(), grpcCases()) {
		r.add(&c, notJudged("nothing came"), []run{{}})
	}
	var b strings.Builder
	if err := r.write(&b, "json", ""); err != nil {
		t.Fatal(err)
	}
	checkSchema(t, b.String())
}

// TestSchemaRefuses: the schema says no to what is not a report.
func TestSchemaRefuses(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`,
		`{"command": "curl", "user_agent": "", "took_ns": 1, "cases": null}`,
		`{"command": [], "user_agent": "", "took_ns": 1.5, "cases": null}`,
		`{"command": [], "user_agent": "", "took_ns": 1, "cases": [{"id": "R-4", "question": "", "title": "", "outcome": "holds", "why": ""}]}`,
		`{"command": [], "user_agent": "", "took_ns": 1, "cases": [{"id": "layers", "question": "", "title": "", "outcome": "passes", "why": ""}]}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if all := readSchema(t); len(all.faults(all, "report", v)) == 0 {
			t.Errorf("it accepts %s", text)
		}
	}
}
