package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"unicode/utf8"
)

// operation is what serves a request of the API: see route.
type operation func(*http.Request) (status int, body any, err error)

// takes makes an operation of one that takes a body.
func takes[B any](serve func(*http.Request, B) (int, any, error)) operation {
	return func(r *http.Request) (int, any, error) {
		var body B
		if err := readBody(r, &body); err != nil {
			return 0, nil, err
		}
		return serve(r, body)
	}
}

// mayTake is takes for a body that may be left out: it is the zero value then.
func mayTake[B any](serve func(*http.Request, B) (int, any, error)) operation {
	read := takes(serve)
	return func(r *http.Request) (int, any, error) {
		if r.ContentLength == 0 {
			return serve(r, *new(B))
		}
		return read(r)
	}
}

// readBody reads the JSON body of a request into v: see readText.
func readBody(r *http.Request, v any) error {
	text, err := bodyOf(r)
	if err != nil {
		return err
	}
	return readText(text, v)
}

// bodyOf returns the body of a request. Its length is bounded by adapt.
func bodyOf(r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(r.Body)
	_, large := errors.AsType[*http.MaxBytesError](err)
	if err == nil || large || errors.Is(err, errStalled) || errors.Is(err, errTooMany) || errors.Is(err, errOverloaded) {
		return text, err
	}
	return nil, fmt.Errorf("%w: the body ended early", errBadRequest)
}

// readText reads one JSON value into v, which is a pointer to its zero value. It refuses
// what encoding/json passes over in silence: see decoder.
func readText(text []byte, v any) error {
	switch {
	case !json.Valid(text):
		return notJSON(text)
	case !utf8.Valid(text): // RFC 8259 section 8.1
		return fmt.Errorf("%w: the body is not UTF-8", errBadRequest)
	}
	return new(decoder).value(reflect.ValueOf(v).Elem(), "", bytes.TrimSpace(text))
}

// notJSON says why a text is not one JSON value.
func notJSON(text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("%w: the body is empty: want a JSON object", errBadRequest)
	}
	var first json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&first)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w: the body is not valid JSON: at byte %d: %w", errBadRequest, syntax.Offset, syntax)
	}
	if first == nil {
		return fmt.Errorf("%w: the body is not valid JSON: it ends too early", errBadRequest)
	}
	return fmt.Errorf("%w: the body has text after the JSON value", errBadRequest)
}
