package storm

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of a scenario file. It is made
// from the types, so that it cannot lag behind them.
func Schema() []byte {
	root := schemaOf(reflect.TypeFor[Scenario]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "forbear sim scenario"
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return append(b, '\n')
}

// choices are the words that a field takes, by type or by type and field. The
// schema lists them, and validation holds scenarios to them.
var choices = map[string][]string{
	// The types.
	"EngineKind": {"auto", "exact"},
	"FaultKind":  {"outage", "errors", "brownout", "slow_start", "pause", "spike", "partition", "slow"},
	"ErrorMode":  {"independent", "sticky", "load"},
	// The fields of a plain string.
	"Client.kind":    {"sync", "grpc", "event", "webhook", "batch"},
	"Client.jitter":  {"full", "decorrelated"},
	"Client.method":  methods,
	"Fault.method":   methods,
	"Client.rtt_law": {"fixed", "exponential"},
	"Baseline.wait":  {"none", "fixed", "exponential", "equal"},
	"Service.law":    {"exponential", "fixed", "lognormal"},
	"Fleet.spread":   {"chance", "turns"},
	"Budget.of":      {"initial", "total"},
}

var methods = []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"}

// unknown returns a fault of the field at path when word is not one of the
// choices of that name. More, if any, follows the choices in the message.
func unknown(path, choice, word string, more ...string) error {
	c := choices[choice]
	if slices.Contains(c, word) {
		return nil
	}
	last := len(c) - 1
	return at(path, "%q is unknown: want %s or %s%s", word, strings.Join(c[:last], ", "), c[last], strings.Join(more, ""))
}

// schemaOf returns the schema of values of type t. What reads itself from text is a
// duration: there is no other such type in a scenario. No number may be negative.
func schemaOf(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number", "minimum": 0}
	case reflect.String:
		s := map[string]any{"type": "string"}
		if c := choices[t.Name()]; c != nil {
			s["enum"] = c
		}
		return s
	default:
		return map[string]any{"type": "integer", "minimum": 0}
	}
}

// structSchema returns the schema of a struct, from its json and doc tags. A field
// without omitzero is required, and none but its fields are allowed.
func structSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	var required []string
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		p := schemaOf(f.Type)
		p["description"] = f.Tag.Get("doc")
		if c := choices[t.Name()+"."+name]; c != nil {
			p["enum"] = c
		}
		properties[name] = p
		if options == "" {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	return s
}
