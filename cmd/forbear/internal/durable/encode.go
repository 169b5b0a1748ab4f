package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// jsonField is a field of a struct under the name that JSON has for it.
type jsonField struct {
	name  string
	kind  reflect.Type
	index []int // see [reflect.Value.FieldByIndex]
}

// fieldLists caches jsonFields by type.
var fieldLists sync.Map

// jsonFields lists the fields of a struct that JSON has, with those of embedded structs.
func jsonFields(t reflect.Type) (list []jsonField) {
	if known, ok := fieldLists.Load(t); ok {
		return known.([]jsonField)
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{f.Index[0]}, inner.index...)
				list = append(list, inner)
			}
		case f.IsExported() && name != "-":
			list = append(list, jsonField{name, f.Type, f.Index})
		}
	}
	fieldLists.Store(t, list)
	return list
}

// fieldOf returns the field of a struct or a map that has a name, to the letter.
func fieldOf(t reflect.Type, name string) (f jsonField, ok bool) {
	if t.Kind() == reflect.Map {
		return jsonField{name: name, kind: t.Elem()}, true
	}
	for _, f := range jsonFields(t) {
		if f.name == name {
			return f, true
		}
	}
	return f, false
}

// namesOf lists the names of the fields of a struct; a map has none.
func namesOf(t reflect.Type) (names []string) {
	if t.Kind() == reflect.Struct {
		for _, f := range jsonFields(t) {
			names = append(names, f.name)
		}
	}
	return names
}

// members calls f with the name and the value of each field of an object, in their order.
// text is valid JSON.
func members(text []byte, f func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// badEscape says which escape of a string stands for no character: half of a surrogate
// pair, which a decoder would replace (RFC 8259 section 8.2), or a zero, which databases
// refuse.
func badEscape(raw []byte) string {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return ""
		}
		if raw = raw[i+1:]; raw[0] != 'u' {
			raw = raw[1:]
			continue
		}
		unit := hex(raw[1:5])
		raw = raw[5:]
		switch {
		case unit == 0:
			return "a zero character"
		case unit < 0xd800 || unit > 0xdfff:
		case unit > 0xdbff || len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' || hex(raw[2:6])&0xfc00 != 0xdc00:
			return "half of a surrogate pair, which is no character"
		default:
			raw = raw[6:]
		}
	}
}

// hex reads the four digits of an escape.
func hex(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits), 16, 16)
	return n
}
