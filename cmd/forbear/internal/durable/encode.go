package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// encode returns the JSON of a response. Durations are written as policy files have them,
// "5s", under a name without "_ns": in the library's types, and so in the store and in
// exported letters, they are integers of nanoseconds. The values of a map[string]any are
// written by their own types.
func encode(v any) (json.RawMessage, error) {
	if m, ok := v.(map[string]any); ok {
		texts := make(map[string]json.RawMessage, len(m))
		for name, inner := range m {
			text, err := encode(inner)
			if err != nil {
				return nil, err
			}
			texts[name] = text
		}
		return marshal(texts)
	}
	text, err := marshal(v)
	if err != nil || v == nil || !hasDurations(reflect.TypeOf(v)) {
		return text, err
	}
	return inWords(reflect.TypeOf(v), "", text)
}

// marshal is [json.Marshal] without escapes for HTML, which no client here needs.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// inWords returns what json.Marshal wrote of a value of type t, which the field of that
// name holds, with its durations in words.
func inWords(t reflect.Type, name string, text json.RawMessage) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return durationInWords(name, text)
	case !hasDurations(t) || text[0] != '{' && text[0] != '[':
		return text, nil
	case text[0] == '[':
		var items []json.RawMessage
		err := json.Unmarshal(text, &items)
		for i := 0; i < len(items) && err == nil; i++ {
			items[i], err = inWords(t.Elem(), name, items[i])
		}
		if err != nil {
			return nil, err
		}
		return marshal(items)
	}
	var fields [][]byte
	err := members(text, func(name string, value json.RawMessage) error {
		f, _ := fieldOf(t, name) // json.Marshal wrote it
		value, err := inWords(f.kind, name, value)
		if f.kind == reflect.TypeFor[time.Duration]() {
			name = publicName(name)
		}
		quoted, _ := marshal(name)
		fields = append(fields, append(append(quoted, ':'), value...))
		return err
	})
	return slices.Concat([]byte("{"), bytes.Join(fields, []byte(",")), []byte("}")), err
}

// durationInWords writes a duration in words.
func durationInWords(name string, text []byte) (json.RawMessage, error) {
	var d time.Duration
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if d < 0 && name == bodyIdle {
		return marshal("off")
	}
	return marshal(policyfile.FormatDuration(d))
}

// publicName is the name of a duration in the API.
func publicName(name string) string { return strings.TrimSuffix(name, "_ns") }

// hasDurations reports whether a value of type t may hold durations. Most do not.
func hasDurations(t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return true
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return false // it writes itself
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		return hasDurations(t.Elem())
	}
	return t.Kind() == reflect.Struct && slices.ContainsFunc(jsonFields(t), func(f jsonField) bool { return hasDurations(f.kind) })
}
