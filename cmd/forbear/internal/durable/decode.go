package durable

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/webhook"
)

// maxFields bounds the fields of all objects of a body: no operation uses as many.
const maxFields = 1000

// decoder reads a JSON text into a value, and refuses what encoding/json accepts in
// silence: an unknown name, one in another case or that Unicode folds to a known one, a
// name that is there twice, half of a surrogate pair. It bounds the number of fields and of
// items, and reads durations as policy files have them. Its errors name the field as the
// caller wrote it and what is wanted there, and never quote a value.
//
// A payload belongs to its sender: nothing in it is checked but that it is JSON in UTF-8.
type decoder struct {
	fields int // so far
}

// value reads a value into v, which path names. null leaves v as it is.
func (d *decoder) value(v reflect.Value, path string, text []byte) error {
	got := kindOfJSON(text[0])
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(text)
		return nil
	case got == "null":
		return nil
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem(), path, text)
	case got == "an object" && (v.Kind() == reflect.Struct || v.Kind() == reflect.Map):
		return d.object(v, path, text)
	case got == "an array" && v.Kind() == reflect.Slice:
		return d.list(v, path, text)
	}
	return scalar(v, cmp.Or(path, "the body"), got, text)
}

// object reads an object into a struct or a map.
func (d *decoder) object(v reflect.Value, path string, text []byte) error {
	t, seen := v.Type(), map[string]bool{}
	if t.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(t))
	}
	return members(text, func(name string, value json.RawMessage) error {
		at := strings.TrimPrefix(path+"."+name, ".")
		field, known := fieldOf(t, name)
		switch d.fields++; {
		case d.fields > maxFields:
			return fmt.Errorf("%w body: more than %d fields", webhook.ErrInvalid, maxFields)
		case !known:
			return fmt.Errorf("%w: unknown field %.60q%s", errBadRequest, at, nearest.Hint(name, namesOf(t), ""))
		case seen[name]:
			return fmt.Errorf("%w body: the field %.60q is repeated", webhook.ErrInvalid, at)
		}
		seen[name] = true
		into := reflect.New(field.kind).Elem()
		if err := d.value(into, at, value); err != nil {
			return err
		}
		if t.Kind() == reflect.Map {
			v.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), into)
		} else {
			v.FieldByIndex(field.index).Set(into)
		}
		return nil
	})
}

// list reads an array into a slice.
func (d *decoder) list(v reflect.Value, path string, text []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		return err
	}
	if len(items) > maxPage {
		return fmt.Errorf("%w body: %s has more than %d items", webhook.ErrInvalid, path, maxPage)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		if err := d.value(v.Index(i), path+"["+strconv.Itoa(i)+"]", item); err != nil {
			return err
		}
	}
	return nil
}

// scalar reads a value that is written as one word, or refuses it as being of another kind
// than v.
func scalar(v reflect.Value, at, got string, raw []byte) error {
	into, want := v.Addr().Interface(), wanted(v.Type())
	switch to := into.(type) {
	case *time.Time:
		want = "an RFC 3339 time such as 2026-01-31T08:00:00Z"
	case encoding.TextUnmarshaler:
		if want = "a string"; got != want {
			break
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return fmt.Errorf("%w: %s: %w", errBadRequest, at, err)
		}
		return nil
	default:
		if why := badEscape(raw); raw[0] == '"' && why != "" {
			return fmt.Errorf("%w: %s has %s", errBadRequest, at, why)
		}
	}
	switch to := into.(type) {
	case *time.Duration:
		want = wantedDuration
		if got == "a string" {
			return readDuration(to, at, raw)
		}
	case *[]byte:
		want = "a string in base64"
		if got == "a string" && json.Unmarshal(raw, to) != nil {
			return fmt.Errorf("%w: %s: it is not base64", errBadRequest, at)
		}
	}
	if json.Unmarshal(raw, into) != nil {
		return fmt.Errorf("%w: %s: want %s, got %s", errBadRequest, at, want, got)
	}
	return nil
}

const wantedDuration = "a duration such as 500ms, 1s or 2m"

// bodyIdle is the one duration that may be negative, which users write as "off".
const bodyIdle = "body_idle"

// readDuration reads a duration that is written as in a policy file. A number is one of
// nanoseconds, as the store and exported letters have it.
func readDuration(to *time.Duration, at string, raw []byte) (err error) {
	var text string
	if err = json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if text == "off" && strings.HasSuffix(at, bodyIdle) {
		*to = -1
		return nil
	}
	if *to, err = policyfile.ParseDuration(text); err != nil {
		return fmt.Errorf("%w: %s: want %s, got %.20q", errBadRequest, at, wantedDuration, text)
	}
	return nil
}

// kindOfJSON says what a JSON value is, by its first byte.
func kindOfJSON(first byte) string {
	switch first {
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

// wanted says what JSON has for a type of Go.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
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
