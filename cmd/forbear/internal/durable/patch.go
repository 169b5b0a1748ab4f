package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/webhook"
)

// mergePatch is the media type of RFC 7396.
const mergePatch = "application/merge-patch+json"

// patchTypes are taken for it: many clients send application/json alone, and curl -d
// says that it sends a form, which other routes take as well.
var patchTypes = []string{mergePatch, "application/json", "application/x-www-form-urlencoded"}

// errMediaType is 415: a JSON Patch (RFC 6902), for one, would be misread.
var errMediaType = errors.New("unsupported media type")

// readPatch reads the body of a PATCH of what is shown as what form points to, which has the
// names and the types of its fields. A body without a type is taken for a merge patch. null and arrays are
// refused: they would replace the whole.
func readPatch(r *http.Request, form any) (map[string]any, error) {
	if text := r.Header.Get("Content-Type"); text != "" {
		kind, _, err := mime.ParseMediaType(text)
		if err != nil || !slices.Contains(patchTypes, kind) {
			return nil, fmt.Errorf("%w: Content-Type is %.60q: want %s", errMediaType, text, mergePatch)
		}
	}
	text, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if json.Valid(text) && bytes.TrimSpace(text)[0] != '{' {
		return nil, fmt.Errorf("%w: the body: want a JSON object", errBadRequest)
	}
	if err := readText(text, form); err != nil {
		return nil, err
	}
	return object(text)
}

// object reads a JSON object, with its numbers as they are written: as float64 a
// large one would come back changed by a patch of another field.
func object(text []byte) (m map[string]any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&m)
	return m, err
}

// applyPatch merges a patch into an endpoint or an application and names the fields
// that changed, never their values. It is changed only when the whole patch is good.
// The version and the state pass through unchanged.
func applyPatch[T webhook.Endpoint | webhook.Application](e *T, patch map[string]any) (changed []string, err error) {
	before, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(merged(before, patch))
	if err != nil {
		return nil, err
	}
	var next T
	if err := readText(text, &next); err != nil {
		return nil, err
	}
	if e, ok := any(&next).(*webhook.Endpoint); ok {
		e.Policy.Kind = forbear.Webhook
	}
	after, err := fieldsOf(&next)
	if err != nil {
		return nil, err
	}
	*e = next
	return differences(before, after, ""), nil
}

// fieldsOf returns the fields of a value as JSON has them. Going through JSON
// keeps one list of fields, that of the struct's tags.
func fieldsOf(e any) (map[string]any, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return object(text)
}

// merged returns a target with a patch applied as RFC 7396 has it: objects are merged, null
// removes, and all else, arrays included, replaces what is there.
func merged(target, patch map[string]any) map[string]any {
	result := map[string]any{}
	maps.Copy(result, target)
	for name, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(result, name)
		case map[string]any:
			inner, _ := result[name].(map[string]any)
			result[name] = merged(inner, v)
		default:
			result[name] = v
		}
	}
	return result
}

// differences names the fields in which two objects differ, down to the second
// level, which is as far as an operator thinks of an endpoint: policy.max_retries.
// The list goes to the audit, which must not hold secrets, so values stay out.
func differences(a, b map[string]any, path string) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if reflect.DeepEqual(a[name], b[name]) {
			continue
		}
		x, ok := a[name].(map[string]any)
		y, ok2 := b[name].(map[string]any)
		if ok && ok2 && path == "" {
			names = append(names, differences(x, y, name+".")...)
		} else {
			names = append(names, path+name)
		}
	}
	return names
}
