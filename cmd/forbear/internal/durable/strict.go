package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/webhook"
)

// maxFields bounds the fields of a body's own objects: more than any operation could
// make use of.
const maxFields = 1000

// strict refuses, before anything is decoded, what encoding/json would pass over in
// silence: it changes bytes that are not UTF-8, takes names whose case differs or that
// Unicode folds to a known one, and takes the last of a name that is there twice. A check
// of names beside such a decoder is a check of other names. It also bounds the fields of
// objects and the items of lists. text is valid JSON for a value of type t.
//
// A payload is its sender's own: of it nothing but the encoding is looked at.
func strict(t reflect.Type, text []byte) error {
	if !utf8.Valid(text) { // RFC 8259 section 8.1
		return fmt.Errorf("%w: the body is not UTF-8", errBadRequest)
	}
	w := walk{text: text}
	return w.value(t, "")
}

// walk goes through a JSON text that is known to be valid.
type walk struct {
	text   []byte
	at     int
	fields int
}

// value goes past one value, which a type wants to be of type t. Values of another kind
// are left to the decoder, which refuses them.
func (w *walk) value(t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch w.space(); {
	case whole(t):
		w.skip()
	case w.text[w.at] == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return w.object(t, path)
	case w.text[w.at] == '[' && t.Kind() == reflect.Slice:
		return w.list(t, path)
	case w.text[w.at] == '"':
		if why := misread(w.skip()); why != "" {
			return fmt.Errorf("%w: %s has %s", errBadRequest, path, why)
		}
	default:
		w.skip()
	}
	return nil
}

// whole reports whether a type reads its text by itself.
func whole(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[time.Time]() ||
		t.Kind() != reflect.String && (p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()))
}

// object goes past an object. Its names are those of t, each of them once.
func (w *walk) object(t reflect.Type, path string) error {
	seen := map[string]bool{}
	for w.next('}') {
		raw := w.skip()
		name, err := unquote(raw)
		if err != nil {
			return fmt.Errorf("%w: a name of a field cannot be read", errBadRequest)
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		ft := fieldType(t, name)
		switch w.fields++; {
		case w.fields > maxFields:
			return fmt.Errorf("%w body: it has more than %d fields", webhook.ErrInvalid, maxFields)
		case misread(raw) != "" || ft == nil:
			return fmt.Errorf("%w: unknown field %.60q%s", errBadRequest, at, nearest.Hint(name, names(t), ""))
		case seen[name]:
			return fmt.Errorf("%w body: the field %.60q is there twice", webhook.ErrInvalid, at)
		}
		seen[name] = true
		w.space()
		w.at++ // the colon
		if err := w.value(ft, at); err != nil {
			return err
		}
	}
	return nil
}

// unquote returns what a JSON string says.
func unquote(raw []byte) (name string, err error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	err = json.Unmarshal(raw, &name)
	return name, err
}

// names lists the fields of a struct.
func names(t reflect.Type) (list []string) {
	for _, f := range jsonFields(t) {
		list = append(list, f.name)
	}
	return list
}

// list goes past an array.
func (w *walk) list(t reflect.Type, path string) error {
	for i := 0; w.next(']'); i++ {
		if i == maxPage {
			return fmt.Errorf("%w body: %s has more than %d items", webhook.ErrInvalid, path, maxPage)
		}
		if err := w.value(t.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

// next goes into an array or an object, or on to what follows in it, and reports whether
// there is anything before its end, which it goes past.
func (w *walk) next(end byte) bool {
	if w.space(); w.text[w.at] != end {
		w.at++ // what opens it, or a comma
	}
	if w.space(); w.text[w.at] == end {
		w.at++
		return false
	}
	return true
}

// space goes past white space.
func (w *walk) space() {
	for strings.IndexByte(" \t\r\n", w.text[w.at]) >= 0 {
		w.at++
	}
}

// skip goes past a value and returns its text.
func (w *walk) skip() []byte {
	from, depth := w.at, 0
	for w.at < len(w.text) {
		c := w.text[w.at]
		w.at++
		switch c {
		case '"':
			w.quoted()
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default: // a part of a number or a word, or what is between values
			if depth > 0 || w.at < len(w.text) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(w.text[w.at])) {
				continue
			}
		}
		if depth == 0 {
			break
		}
	}
	return w.text[from:w.at]
}

// quoted goes past the rest of a string.
func (w *walk) quoted() {
	for {
		w.at += bytes.IndexAny(w.text[w.at:], `"\`) + 1
		if w.text[w.at-1] == '"' {
			return
		}
		w.at++ // what is escaped
	}
}

// misread says what a string has in an escape that a text may not have: half of a surrogate
// pair, which a decoder would change (RFC 8259 section 8.2), or a zero, which databases
// take for an error of their own.
func misread(raw []byte) string {
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
