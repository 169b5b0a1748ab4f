package policyfile

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// schema.json is what the types say now: go test -update writes it.
func TestSchemaIsCurrent(t *testing.T) {
	want, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema.json is not what the types say: run go test -run TestSchemaIsCurrent -update")
	}
}

// Every key of the schema is one that the reader knows, at its place.
func TestSchemaKeysAreRead(t *testing.T) {
	data, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	var doc object
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	count := 0
	var walk func(s object, open, shut string)
	walk = func(s object, open, shut string) {
		for _, one := range anys(s["oneOf"]) {
			walk(one.(object), open, shut)
		}
		if item, ok := s["items"].(object); ok {
			walk(item, open+"[", "]"+shut)
		}
		if more, ok := s["additionalProperties"].(object); ok && s["propertyNames"] != nil {
			walk(more, open+"{x: ", "}"+shut)
		}
		p, _ := s["properties"].(object)
		for name, v := range p {
			count++
			text := open + "{" + name + ": }" + shut
			_, err := Parse("f", []byte(text))
			if err == nil || strings.Contains(err.Error(), "unknown key") {
				t.Errorf("%s: got %v, want a fault for the empty value alone", text, err)
			}
			walk(v.(object), open+"{"+name+": ", "}"+shut)
		}
	}
	walk(doc, "", "")
	if count < 100 {
		t.Errorf("only %d keys were tried", count)
	}
}

func anys(v any) []any { list, _ := v.([]any); return list }

// Every key that the reader knows is in the schema: what it offers for a slip
// comes from the same tables that it reads by.
func TestReaderKeysAreInTheSchema(t *testing.T) {
	d := newDecoder("f", today)
	d.inspect, d.elsewhere = true, true
	r := &policyReader{decoder: d, layer: &layer{places: map[string]place{}}, here: map[string]bool{}}
	known := r.fields(r.around(&Dependency{}))
	text := string(Schema())
	for name := range known {
		if !strings.Contains(text, `"`+name+`":`) {
			t.Errorf("the schema lacks %s", name)
		}
	}
}
