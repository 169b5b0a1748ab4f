package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// The API writes durations as policy files do, "5s", and reads them so. In the
// library's types, and with them in the store and in exported letters, JSON has
// them as integers of nanoseconds. The two are translated here, by the types
// that the text is of, so that no type is there twice. Integers are still read.

// outward makes the API's text of the library's, and inward the reverse.
var (
	outward = translation{span: spanOut, rename: func(name string) string { return strings.TrimSuffix(name, "_ns") }}
	inward  = translation{span: spanIn, rename: func(name string) string { return name }}
)

// translation changes the durations of a JSON text, and leaves all else as it is.
type translation struct {
	span   func(name string, raw json.RawMessage) (json.RawMessage, error)
	rename func(name string) string // of the field of a duration
}

// encode returns the JSON of a response. The values of a map[string]any are
// translated by their own types.
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
	if err != nil || v == nil {
		return text, err
	}
	return outward.value(reflect.TypeOf(v), "", text)
}

// marshal is [json.Marshal] without escapes for HTML, which no client here needs.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// value translates one value of type t, which the field of that name holds.
func (tr translation) value(t reflect.Type, name string, raw json.RawMessage) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Duration]() {
		return tr.span(name, raw)
	}
	first := bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case !timed(t) || len(first) == 0:
		return raw, nil
	case first[0] == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return tr.object(t, name, raw)
	case first[0] == '[' && t.Kind() == reflect.Slice:
		return tr.list(t, name, raw)
	default:
		return raw, nil // null, or what the decoder will refuse
	}
}

// list translates the items of an array.
func (tr translation) list(t reflect.Type, name string, raw json.RawMessage) (json.RawMessage, error) {
	var items []json.RawMessage
	err := json.Unmarshal(raw, &items)
	for i := 0; i < len(items) && err == nil; i++ {
		items[i], err = tr.value(t.Elem(), name, items[i])
	}
	if err != nil {
		return nil, err
	}
	return marshal(items)
}

// object translates the fields of an object, in their order.
func (tr translation) object(t reflect.Type, path string, raw json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("{")
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // the keys of objects are nothing else
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if ft := fieldType(t, name); ft != nil {
			if value, err = tr.value(ft, strings.TrimPrefix(path+"."+name, "."), value); err != nil {
				return nil, err
			}
			if ft == reflect.TypeFor[time.Duration]() {
				name = tr.rename(name)
			}
		}
		quoted, err := marshal(name)
		if err != nil {
			return nil, err
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(quoted)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// fieldType returns the type of a struct's field, or of a map's values; nil when
// there is none of that name, to the letter.
func fieldType(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for _, f := range jsonFields(t) {
		if f.name == name {
			return f.kind
		}
	}
	return nil
}

// jsonField is a field of a struct by the name that JSON has for it.
type jsonField struct {
	name string
	kind reflect.Type
}

// ofTypes keeps what was found out about types, which each request asks for.
type ofTypes[V any] struct{ known sync.Map }

// get returns what find says of t, and asks it once.
func (o *ofTypes[V]) get(t reflect.Type, find func(reflect.Type) V) V {
	if v, ok := o.known.Load(t); ok {
		return v.(V)
	}
	v := find(t)
	o.known.Store(t, v)
	return v
}

var (
	fieldLists ofTypes[[]jsonField]
	timedTypes ofTypes[bool]
)

// jsonFields lists the fields of a struct that JSON knows, those of embedded
// structs among them.
func jsonFields(t reflect.Type) []jsonField { return fieldLists.get(t, findFields) }

func findFields(t reflect.Type) (list []jsonField) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			list = append(list, jsonFields(f.Type)...)
		case f.IsExported() && name != "-":
			list = append(list, jsonField{name, f.Type})
		}
	}
	return list
}

// timed reports whether a value of type t may hold durations. Most do not: their
// text is not looked at.
func timed(t reflect.Type) bool { return timedTypes.get(t, isTimed) }

func isTimed(t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return true
	// It writes itself.
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return isTimed(t.Elem())
	case reflect.Struct:
		for _, f := range jsonFields(t) {
			if isTimed(f.kind) {
				return true
			}
		}
	}
	return false
}

// bodyIdle is the one duration with a negative value, which is a word to users.
const bodyIdle = "body_idle"

// spanOut writes a duration as people do.
func spanOut(name string, raw json.RawMessage) (json.RawMessage, error) {
	var d time.Duration
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if d < 0 && strings.HasSuffix(name, bodyIdle) {
		return json.RawMessage(`"off"`), nil
	}
	return marshal(policyfile.FormatDuration(d))
}

// spanIn reads a duration; a number is one of nanoseconds, and left to the
// decoder, as is null.
func spanIn(name string, raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if len(raw) == 0 || raw[0] != '"' {
		return raw, nil
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	if text == "off" && strings.HasSuffix(name, bodyIdle) {
		return json.RawMessage("-1"), nil
	}
	d, err := policyfile.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: want a duration such as 500ms, 1s or 2m, got %.20q", errBadRequest, name, text)
	}
	return marshal(d)
}
