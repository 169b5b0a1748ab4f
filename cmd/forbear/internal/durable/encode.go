package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
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
	e := encoder{scanner: scanner{text: text}}
	err = e.value(reflect.TypeOf(v), "")
	return e.out.Bytes(), err
}

// marshal is [json.Marshal] without escapes for HTML, which no client here needs.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// encoder copies a text that json.Marshal wrote, with durations in words.
type encoder struct {
	scanner
	out bytes.Buffer
}

// value copies a value of type t, which the field of that name holds.
func (e *encoder) value(t reflect.Type, name string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch first := e.text[e.at]; {
	case t == reflect.TypeFor[time.Duration]():
		return e.duration(name)
	case !hasDurations(t) || first != '{' && first != '[':
		e.out.Write(e.skip())
		return nil
	case first == '[':
		return e.items(']', func() error { return e.value(t.Elem(), name) })
	}
	return e.items('}', func() error {
		raw, name := e.name()
		f, _ := fieldOf(t, name) // json.Marshal wrote it
		if f.kind == reflect.TypeFor[time.Duration]() {
			raw, _ = marshal(publicName(name))
		}
		e.out.Write(raw)
		e.out.WriteByte(':')
		return e.value(f.kind, name)
	})
}

// items copies an array or an object.
func (e *encoder) items(end byte, item func() error) error {
	e.out.WriteByte(e.text[e.at])
	for first := true; e.next(end); first = false {
		if !first {
			e.out.WriteByte(',')
		}
		if err := item(); err != nil {
			return err
		}
	}
	e.out.WriteByte(end)
	return nil
}

// duration writes a duration in words.
func (e *encoder) duration(name string) error {
	var d time.Duration
	if err := json.Unmarshal(e.skip(), &d); err != nil {
		return err
	}
	text := policyfile.FormatDuration(d)
	if d < 0 && name == bodyIdle {
		text = "off"
	}
	word, err := marshal(text)
	e.out.Write(word)
	return err
}

// publicName is the name of a duration in the API.
func publicName(name string) string { return strings.TrimSuffix(name, "_ns") }

// durationTypes caches hasDurations by type.
var durationTypes sync.Map

// hasDurations reports whether a value of type t may hold durations. Most do not.
func hasDurations(t reflect.Type) (has bool) {
	if known, ok := durationTypes.Load(t); ok {
		return known.(bool)
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		has = true
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		// It writes itself.
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		has = hasDurations(t.Elem())
	case t.Kind() == reflect.Struct:
		for _, f := range jsonFields(t) {
			has = has || hasDurations(f.kind)
		}
	}
	durationTypes.Store(t, has)
	return has
}
