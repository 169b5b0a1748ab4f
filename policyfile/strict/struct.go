package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxList bounds the entries of one list.
const maxList = 1000

// Places are the nodes of a document by their paths, as in "fleets[0].client.policy".
// That of the root is "".
type Places map[string]*yaml.Node

// Nearest returns the node at path, or at the longest part of it that the file has: a
// required field that is missing is reported at the mapping that lacks it.
func (p Places) Nearest(path string) *yaml.Node {
	for p[path] == nil && path != "" {
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return p[path]
}

// Struct reads a document into the struct that into points to, by the JSON names of its
// fields. What reads itself from text does so; numbers may have underscores, since
// 100_000_000 is easier to read, and fractions may be percentages. Ranges are for the
// caller to check, who finds the place of each field in what Struct returns.
func (r *Reader) Struct(root *yaml.Node, into any) Places {
	places := Places{}
	r.value(root, "", reflect.ValueOf(into).Elem(), places)
	return places
}

// value reads a node into v by v's kind.
func (r *Reader) value(n *yaml.Node, path string, v reflect.Value, places Places) {
	n = Resolve(n)
	places[path] = n
	// A pointer is a field that may be left out. The file has it, and so it
	// gets a value.
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := r.Scalar(n, path, "a value such as 500ms"); ok {
			if err := u.UnmarshalText([]byte(s)); err != nil {
				r.Fault(n, "%s: %v", path, err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		r.fields(n, path, v, places)
	case reflect.Slice:
		items := r.Items(n, path)
		if len(items) > maxList {
			r.Fault(n, "%s has %d entries: want at most %d", path, len(items), maxList)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			r.value(item, fmt.Sprintf("%s[%d]", path, i), v.Index(i), places)
		}
	case reflect.Bool:
		set := false
		r.Flag(n, path, &set)
		v.SetBool(set)
	case reflect.String:
		if n.Kind != yaml.ScalarNode {
			r.Fault(n, "%s is %s: want text", path, Describe(n))
			return
		}
		v.SetString(n.Value) // which may be empty
	default:
		r.number(n, path, v)
	}
}

// fields reads a mapping into a struct.
func (r *Reader) fields(n *yaml.Node, path string, v reflect.Value, places Places) {
	known, what, prefix := Fields{}, path, path+"."
	if path == "" {
		what, prefix = "the file", ""
	}
	for f, field := range v.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known[name] = func(n *yaml.Node) { r.value(n, prefix+name, field, places) }
		}
	}
	r.Keys(n, what, known)
}

// number reads a number of v's kind.
func (r *Reader) number(n *yaml.Node, path string, v reflect.Value) {
	s, ok := r.Scalar(n, path, "a number")
	if !ok {
		return
	}
	digits, percent := strings.CutSuffix(strings.ReplaceAll(s, "_", ""), "%")
	var err error
	switch v.Kind() {
	case reflect.Int:
		var i int64
		i, err = strconv.ParseInt(digits, 10, 64)
		v.SetInt(i)
	case reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(digits, 10, 64)
		v.SetUint(u)
	case reflect.Float64:
		var f float64
		if f, err = strconv.ParseFloat(digits, 64); percent {
			f, percent = f/100, false
		}
		v.SetFloat(f)
	default:
		panic("no reader for " + v.Type().String()) // the tests reach every field
	}
	if err != nil || percent {
		want := "a number such as 10_000 or 0.5"
		if v.Kind() != reflect.Float64 {
			want = "a whole number such as 10_000"
		}
		r.Fault(n, "%s is %s: want %s", path, Quote(s), want)
	}
}
