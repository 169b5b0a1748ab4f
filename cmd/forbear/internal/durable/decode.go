package durable

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// read reads a JSON body, with its durations as the API has them; fields that are
// unknown or there twice are refused, so that none is a silent default: see strict. A second JSON value
// is refused as well, since it would be dropped without a word. Errors name the
// field as the caller wrote it, and never quote a value.
func read(r *http.Request, v any) error {
	text, err := bodyOf(r)
	if err != nil {
		return err
	}
	return readText(text, v)
}

// bodyOf reads a request's body.
func bodyOf(r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(r.Body)
	_, large := errors.AsType[*http.MaxBytesError](err)
	if err == nil || large || errors.Is(err, errStalled) || errors.Is(err, errTooMany) || errors.Is(err, errOverloaded) {
		return text, err
	}
	return nil, fmt.Errorf("%w: the body ended early", errBadRequest)
}

// readText is read for a body that is there.
func readText(text []byte, v any) error {
	t := reflect.TypeOf(v).Elem()
	if !json.Valid(text) {
		return whyNot(t, text, nil)
	}
	if err := strict(t, text); err != nil {
		return err
	}
	raw, err := inward.value(t, "", text)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return whyNot(t, text, err)
	}
	return nil
}

// whyNot says in the caller's terms why a text is not the JSON of a type. What the
// decoder says names types of this program, and one thing at a time without its place.
func whyNot(t reflect.Type, text []byte, err error) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("%w: the body is empty: want a JSON object", errBadRequest)
	}
	var first json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(text))
	switch syntax, _ := errors.AsType[*json.SyntaxError](dec.Decode(&first)); {
	case syntax != nil:
		return fmt.Errorf("%w: the body is not valid JSON: at byte %d: %w", errBadRequest, syntax.Offset, syntax)
	case first == nil:
		return fmt.Errorf("%w: the body is not valid JSON: it ends too early", errBadRequest)
	}
	if _, more := dec.Token(); !errors.Is(more, io.EOF) {
		return fmt.Errorf("%w: something follows the JSON value", errBadRequest)
	}
	if fault := mismatch(t, "", first); fault != nil {
		return fmt.Errorf("%w: %w", errBadRequest, fault)
	}
	if errors.Is(err, errBadRequest) {
		return err // of a duration
	}
	return fmt.Errorf("%w: the body is not what this operation takes", errBadRequest)
}

// mismatch returns the first thing in a JSON text that is not of type t, or nil. at
// is where the text is, such as "policy.backoff".
func mismatch(t reflect.Type, at string, raw json.RawMessage) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	got := jsonKind(raw)
	unlike := func(want string) error {
		return fmt.Errorf("%s: want %s, got %s", cmp.Or(at, "the body"), want, got)
	}
	switch {
	case got == "null" && at != "" || t == reflect.TypeFor[json.RawMessage]():
		return nil
	case t == reflect.TypeFor[time.Duration]():
		if got != "a string" && got != "a number" {
			return unlike("a duration such as 500ms, 1s or 2m")
		}
		return nil // its text has been read
	case t == reflect.TypeFor[time.Time]():
		var at time.Time
		if json.Unmarshal(raw, &at) != nil {
			return unlike("an RFC 3339 time such as 2026-01-31T08:00:00Z")
		}
		return nil
	case t == reflect.TypeFor[[]byte]():
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return unlike("a string in base64")
		}
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return fmt.Errorf("%s: it is not base64", at)
		}
		return nil
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		if got != "a string" {
			return unlike("a string")
		}
		if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		if got != "an object" {
			return unlike("an object")
		}
		return mismatchInObject(t, at, raw)
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return unlike(wanted(t.Kind(), t.Elem().Kind()))
		}
		for i, item := range items {
			if err := mismatch(t.Elem(), fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
		return nil
	}
	if json.Unmarshal(raw, reflect.New(t).Interface()) != nil {
		return unlike(wanted(t.Kind(), 0))
	}
	return nil
}

// mismatchInObject looks at the fields of an object, in the order of their names, which
// strict has seen.
func mismatchInObject(t reflect.Type, at string, raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path := strings.TrimPrefix(at+"."+name, ".")
		if err := mismatch(fieldType(t, name), path, fields[name]); err != nil {
			return err
		}
	}
	return nil
}

// jsonKind says what a JSON text is.
func jsonKind(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// wanted says what JSON has for a kind of Go's; of is that of the items of a slice.
func wanted(k, of reflect.Kind) string {
	switch k {
	case reflect.Slice:
		if of == reflect.String {
			return "an array of strings"
		}
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Float64:
		return "a number"
	}
	return "an integer"
}
