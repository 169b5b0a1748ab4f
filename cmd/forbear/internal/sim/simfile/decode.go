package simfile

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/nearest"
)

// decoder fills in a value from the nodes of a document. It keeps the node
// of each path, so that what storm finds wrong later still has its place in
// the file. It is used for one document.
type decoder struct {
	file   string
	nodes  map[string]*yaml.Node
	faults []error
	depth  int
}

// fault adds a mistake at a node, up to a number that a reader can take in:
// beyond that the first ones are what has to be corrected.
func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, &Fault{d.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
	}
}

// nearestNode returns the node at path, or at the longest part of it that
// the file has. A required field that is missing is thus reported at the
// mapping that lacks it.
func (d *decoder) nearestNode(path string, root *yaml.Node) *yaml.Node {
	for path != "" {
		if n := d.nodes[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return root
}

// join is the path of a field below path, in the form in which storm names
// fields: "fleets[0].client.policy".
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// decode reads a node into v by v's kind. Aliases are refused: a document
// can make itself exponentially large with them, and no scenario needs one.
func (d *decoder) decode(n *yaml.Node, path string, v reflect.Value) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.fault(n, "is nested too deeply")
		return
	}
	// Kept before the value is judged, so that a faulty value has its place
	// too.
	d.nodes[path] = n
	if n.Kind == yaml.AliasNode {
		d.fault(n, "aliases are not supported here: write it out")
		return
	}
	// A pointer is a field that may be left out. The file has it, and so it
	// gets a value.
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	// Durations and enumerations read themselves, as they do from JSON.
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			d.fault(n, "%s: want a value such as 500ms", path)
		} else if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.fault(n, "%s: %v", path, err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, path, v)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.fault(n, "%s: want a list", path)
			return
		}
		if len(n.Content) > maxList {
			d.fault(n, "%s: %d entries: at most %d", path, len(n.Content), maxList)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, c := range n.Content {
			d.decode(c, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	default:
		d.scalar(n, path, v)
	}
}

// mapping reads a struct. A field that is unknown or repeated is a mistake:
// the scenario that runs must be the one that its author sees.
func (d *decoder) mapping(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "%swant a mapping", prefix(path))
		return
	}
	// The JSON tags name the fields; one without a tag, or with "-", is not for
	// files.
	// names is for suggestions: the nearest field is what a misspelt one
	// meant.
	fields, names := map[string]int{}, []string{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = i
			names = append(names, name)
		}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, ok := fields[key.Value]
		switch {
		case !ok:
			d.fault(key, "%sunknown field %q%s", prefix(path), key.Value, nearest.Hint(key.Value, names, ""))
		case seen[key.Value]:
			d.fault(key, "%sfield %q is there twice", prefix(path), key.Value)
		default:
			d.decode(value, join(path, key.Value), v.Field(field))
		}
		// A repeated field is marked whether or not it could be read.
		seen[key.Value] = true
	}
}

// prefix is the path at the beginning of a message; the root has none.
func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// scalar reads a single value. Numbers may have underscores, since
// 100_000_000 is easier to read, and fractions may be percentages. Ranges
// are storm's to check.
func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, "%s: want a single value", path)
		return
	}
	text, digits := n.Value, strings.ReplaceAll(n.Value, "_", "")
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		// An empty text is allowed here: storm knows which names must not
		// be empty.
		return
	case reflect.Bool:
		if text != "true" && text != "false" {
			d.fault(n, "%s: %q is not true or false", path, text)
		}
		v.SetBool(text == "true")
		return
	case reflect.Float64:
		// A percent sign divides by 100; without it a share is written as
		// 0.3.
		var f float64
		if part, percent := strings.CutSuffix(text, "%"); percent {
			f, err = strconv.ParseFloat(part, 64)
			f /= 100
		} else {
			f, err = strconv.ParseFloat(digits, 64)
		}
		v.SetFloat(f)
	case reflect.Int:
		var i int64
		i, err = strconv.ParseInt(digits, 10, 64)
		v.SetInt(i)
	case reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(digits, 10, 64)
		v.SetUint(u)
	}
	if err != nil {
		d.fault(n, "%s: %q is not a number of this kind", path, text)
	}
}
