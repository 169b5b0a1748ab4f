package forrst_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
)

const specFolder = "../docs/forrst/extensions"

func specFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(specFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example is one JSON block of the specification, with the comment before it.
type example struct {
	note string
	json string
}

var exampleBlock = regexp.MustCompile("(?s)(?:<!-- ([^\n]*) -->\n\n)?```json\n(.*?)```")

func examples(t *testing.T) (all []example) {
	t.Helper()
	for _, m := range exampleBlock.FindAllStringSubmatch(specFile(t, "retry.md"), -1) {
		all = append(all, example{m[1], m[2]})
	}
	return all
}

// TestSpecExamples runs every example of the specification: what it says that a
// client does with it, the client does, and its data keeps to the schema.
func TestSpecExamples(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(specFile(t, "retry.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	expected, shown := 0, false
	all := examples(t)
	for i, e := range all {
		if e.json == specFile(t, "retry.schema.json") {
			shown = true
			continue
		}
		resp, err := forrst.ParseResponse([]byte(e.json))
		if err != nil {
			t.Errorf("example %d: %v\n%s", i, err, e.json)
			continue
		}
		for _, x := range resp.Extensions {
			if x.URN == forrst.URN {
				checkSchema(t, schema, x.Data)
			}
		}
		kind, want, _ := strings.Cut(e.note, ": ")
		switch kind {
		case "expect":
			expected++
			if got := describe(forrst.Phase3.Advise(forrst.Message{Body: []byte(e.json), Now: time.Unix(1, 0)})); got != want {
				t.Errorf("example %d: %s, want %s\n%s", i, got, want, e.json)
			}
		case "migrate":
			// A client makes the same of what follows as it did of the boolean.
			advice := func(p forrst.Phase, text string) forrst.Advice {
				a := p.Advise(forrst.Message{Body: []byte(text), Now: time.Unix(1, 0)})
				a.Source = ""
				return a
			}
			if before, after := advice(forrst.Phase1, e.json), advice(forrst.Phase3, all[i+1].json); before != after {
				t.Errorf("with the boolean %+v, with the extension %+v", before, after)
			}
		case "":
			if i == 0 || all[i-1].note != "migrate" {
				t.Errorf("example %d says not what to expect", i)
			}
		default:
			t.Errorf("example %d: %q is not understood", i, e.note)
		}
	}
	if expected < 10 || !shown {
		t.Errorf("%d examples with an expectation, the schema shown: %v", expected, shown)
	}
}

// retries reports whether a policy for events tries again after f.
func retries(f forbear.Failure) bool {
	p := forbear.Policy{Kind: forbear.Event}
	return forbear.Decide(&p, forbear.State{}, f, time.Unix(1, 0), func() float64 { return 0 }).Retry
}

// describe says what advice amounts to, in the words of the specification.
func describe(a forrst.Advice) string {
	switch {
	case a.Outcome == forrst.Success || a.Outcome == forrst.Queued:
		return "success"
	case !retries(a.Failure):
		return "stop by " + string(a.Source)
	}
	h := a.Failure.Hint
	s := fmt.Sprintf("retry %s %v", a.Strategy, h.Floor)
	if h.MaxRetries > 0 {
		s += fmt.Sprintf(" max %d", h.MaxRetries)
	}
	if h.LongerDeadline {
		s += " longer"
	}
	return s + " by " + string(a.Source)
}

var codeRow = regexp.MustCompile("(?m)^\\| `[A-Z_]+` \\|")

// TestSpecDefaults holds the table of the specification to the code's.
func TestSpecDefaults(t *testing.T) {
	text := specFile(t, "retry.md")
	for _, row := range forrst.Defaults() {
		after := "none, and a longer deadline"
		if row.After > 0 {
			after = fmt.Sprintf("%d s", int(row.After.Seconds()))
		}
		if row.Code == "IDEMPOTENCY_PROCESSING" {
			after += ", same key"
		}
		most := "the client's own"
		if row.MaxRetries > 0 {
			most = fmt.Sprint(row.MaxRetries)
		}
		line := fmt.Sprintf("| `%s` | %d | %s | %s | %s |\n", row.Code, row.Status, row.Strategy, after, most)
		if !strings.Contains(text, line) {
			t.Errorf("the specification lacks the row %s", line)
		}
	}
	if n := len(codeRow.FindAllString(text, -1)); n != len(forrst.Defaults()) {
		t.Errorf("%d rows with a code, want %d", n, len(forrst.Defaults()))
	}
	index := specFile(t, "README.md")
	if !strings.Contains(index, "`"+forrst.URN+"`") || !strings.Contains(index, "(retry.md)") {
		t.Error("the index of extensions has no entry for the retry extension")
	}
}

// TestSchemaRefuses sees that the schema says no to what the reader ignores.
func TestSchemaRefuses(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(specFile(t, "retry.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{
		`[]`, `{}`, `{"allowed":"yes"}`, `{"allowed":true,"strategy":"linear"}`, `{"allowed":true,"max_attempts":-1}`,
		`{"allowed":true,"max_attempts":1.5}`, `{"allowed":true,"after":{"value":-1,"unit":"second"}}`,
		`{"allowed":true,"after":{"value":1,"unit":"seconds"}}`, `{"allowed":true,"after":5}`, `{"allowed":false,"strategy":"fixed"}`,
	} {
		if problem := violation(schema, decode(t, data)); problem == "" {
			t.Errorf("the schema accepts %s", data)
		}
	}
	for _, row := range forrst.Defaults() {
		checkSchema(t, schema, row.Retry().Extension().Data)
	}
}

func checkSchema(t *testing.T, schema map[string]any, data []byte) {
	t.Helper()
	if problem := violation(schema, decode(t, string(data))); problem != "" {
		t.Errorf("%s: %s", data, problem)
	}
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// violation judges a value by the part of JSON Schema that the file uses. It
// panics on a keyword that it does not know.
func violation(schema map[string]any, v any) string {
	object, _ := v.(map[string]any)
	number, isNumber := v.(float64)
	for keyword, rule := range schema {
		ok := true
		switch keyword {
		case "$schema", "$id", "title", "description", "then":
		case "type":
			ok = isType(rule.(string), v)
		case "const":
			ok = reflect.DeepEqual(rule, v)
		case "enum":
			ok = slices.Contains(rule.([]any), v)
		case "minimum":
			ok = !isNumber || number >= rule.(float64)
		case "maxProperties":
			ok = len(object) <= int(rule.(float64))
		case "required":
			for _, name := range rule.([]any) {
				_, there := object[name.(string)]
				ok = ok && there
			}
		case "properties":
			for name, sub := range rule.(map[string]any) {
				if part, there := object[name]; there {
					if problem := violation(sub.(map[string]any), part); problem != "" {
						return name + ": " + problem
					}
				}
			}
		case "if":
			if violation(rule.(map[string]any), v) == "" {
				if problem := violation(schema["then"].(map[string]any), v); problem != "" {
					return problem
				}
			}
		default:
			panic("the schema's keyword " + keyword + " is not understood")
		}
		if !ok {
			return fmt.Sprintf("%v breaks %s %v", v, keyword, rule)
		}
	}
	return ""
}

func isType(name string, v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return name == "object"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "integer" && x == float64(int64(x))
	}
	return false
}
