package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
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
	w := words{in: text, out: make([]byte, 0, len(text))}
	err = w.value(reflect.TypeOf(v), "")
	return w.out, err
}

// marshal is [json.Marshal] without escapes for HTML, which no client here needs.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// words writes what json.Marshal wrote, in, to out with its durations in words, in one
// pass: a page of a list may have thousands.
type words struct{ in, out []byte }

// value writes the next value, of type t, which the field of that name holds.
func (w *words) value(t reflect.Type, name string) (err error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	open := w.in[0]
	switch {
	case t == reflect.TypeFor[time.Duration]():
		text, err := durationInWords(name, w.take(valueEnd(w.in)))
		w.out = append(w.out, text...)
		return err
	case !hasDurations(t) || open != '{' && open != '[':
		w.out = append(w.out, w.take(valueEnd(w.in))...)
		return nil
	}
	w.out = append(w.out, w.take(1)...)
	for w.in[0] != open+2 && err == nil { // "]" and "}" are two behind what opens
		if w.in[0] == ',' {
			w.out = append(w.out, w.take(1)...)
		}
		if open == '[' {
			err = w.value(t.Elem(), name)
			continue
		}
		name := string(w.take(valueEnd(w.in))[1:])
		name = name[:len(name)-1]
		f, _ := fieldOf(t, name) // json.Marshal wrote it
		public := name
		if f.kind == reflect.TypeFor[time.Duration]() {
			public = publicName(name)
		}
		w.out = append(append(append(w.out, '"'), public...), '"')
		w.out = append(w.out, w.take(1)...) // the colon
		err = w.value(f.kind, name)
	}
	w.out = append(w.out, w.take(1)...)
	return err
}

// take returns the next n bytes, and goes on behind them.
func (w *words) take(n int) []byte {
	text := w.in[:n]
	w.in = w.in[n:]
	return text
}

// valueEnd returns where the first value of JSON without spaces ends.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 { // of what the value is in
				return i
			}
			if text[i] == ',' {
				continue
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
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

// withDurations are the types that are known to hold durations, or not to.
var withDurations sync.Map

// hasDurations reports whether a value of type t may hold durations. Most do not.
func hasDurations(t reflect.Type) (has bool) {
	if known, ok := withDurations.Load(t); ok {
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
		has = slices.ContainsFunc(jsonFields(t), func(f jsonField) bool { return hasDurations(f.kind) })
	}
	withDurations.Store(t, has)
	return has
}
