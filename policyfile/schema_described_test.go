package policyfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Editors show each key with what it means. A description that no key has is of a
// key that is gone.
func TestSchemaDescribesEveryKey(t *testing.T) {
	doc := object{}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var walk func(s object, path string)
	walk = func(s object, path string) {
		for _, one := range either(s) {
			walk(one, path)
		}
		if item, ok := s["items"].(object); ok {
			walk(item, path)
		}
		if more, ok := s["additionalProperties"].(object); ok {
			walk(more, path+".*")
		}
		p, _ := s["properties"].(object)
		for name, v := range p {
			text, _ := v.(object)["description"].(string)
			if used[text] = true; text == "" || text == "a duration such as 500ms, 1s or 2m" || text == "a share such as 20% or 0.2" {
				t.Errorf("%s.%s is described as %q", path, name, text)
			}
			walk(v.(object), path+"."+name)
		}
	}
	walk(doc, "")
	for _, key := range slices.Sorted(maps.Keys(descriptions)) {
		if !used[descriptions[key]] {
			t.Errorf("no key of the schema has the description of %s", key)
		}
	}
}

// The defaults are those of the section's kind, in the words of a policy file, and
// the reader takes them.
func TestSchemaDefaults(t *testing.T) {
	doc := object{}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	at := func(path string) object {
		s := doc
		for name := range strings.SplitSeq(path, ".") {
			if name == "*" {
				s = s["additionalProperties"].(object)
				continue
			}
			for _, one := range append(either(s), s) {
				if p, ok := one["properties"].(object); ok {
					s = p[name].(object)
					break
				}
			}
		}
		return s
	}
	for path, want := range map[string]any{
		"dependencies.*.max_retries": 3.0, "consumers.*.max_retries": 5.0, "webhooks.*.max_attempts": 5.0,
		"dependencies.*.total": "30s", "consumers.*.total": "24h", "dependencies.*.per_attempt": "5s",
		"dependencies.*.budget.ratio": "20%", "webhooks.*.breaker.probes": 5.0,
		"profiles.*.max_retries": nil, "dependencies.*.breaker.slow_call": nil,
	} {
		if got := at(path)["default"]; got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}
