// Package simfile reads simulator scenarios from YAML (of which JSON is a part),
// with the position of every mistake.
package simfile

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/storm"
)

// maxSize bounds a scenario file.
const maxSize = 1 << 20

// Fault is one mistake, with its place.
type Fault struct {
	File         string
	Line, Column int
	Detail       string
}

// Error returns "file:line:column: detail".
func (f *Fault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Detail)
}

// Load reads the file. Its error joins a [*Fault] for every mistake.
func Load(path string) (storm.Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return storm.Scenario{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return storm.Scenario{}, err
	}
	if info.Size() > maxSize {
		return storm.Scenario{}, fmt.Errorf("%s: %d bytes: at most %d", path, info.Size(), maxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return storm.Scenario{}, err
	}
	return Parse(path, data)
}

// Parse reads a scenario from data. name is used in errors, and policy files
// that it refers to are looked up next to it.
func Parse(name string, data []byte) (storm.Scenario, error) {
	var s storm.Scenario
	if len(data) > maxSize {
		return s, fmt.Errorf("%s: %d bytes: at most %d", name, len(data), maxSize)
	}
	d := &decoder{file: name, nodes: map[string]*yaml.Node{}}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return s, &Fault{name, 1, 1, "the file is empty"}
	}
	root := doc.Content[0]
	d.decode(root, "", reflect.ValueOf(&s).Elem())
	if len(d.faults) == 0 {
		d.policies(&s)
	}
	if len(d.faults) == 0 {
		for _, f := range storm.FieldErrors(s.Validate()) {
			d.fault(d.nearestNode(f.Path, root), "%s", f.Error())
		}
	}
	return s, errors.Join(d.faults...)
}

type decoder struct {
	file   string
	nodes  map[string]*yaml.Node
	faults []error
	depth  int
}

func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	const most = 50
	if len(d.faults) < most {
		d.faults = append(d.faults, &Fault{d.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
	}
}

// nearestNode returns the node at path, or at the longest part of it that the
// file has.
func (d *decoder) nearestNode(path string, root *yaml.Node) *yaml.Node {
	for path != "" {
		if n := d.nodes[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return root
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *decoder) decode(n *yaml.Node, path string, v reflect.Value) {
	if d.depth++; d.depth > 32 {
		d.fault(n, "is nested too deeply")
		d.depth--
		return
	}
	defer func() { d.depth-- }()
	d.nodes[path] = n
	if n.Kind == yaml.AliasNode {
		d.fault(n, "aliases are not supported here: write it out")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
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
		const most = 1000
		if len(n.Content) > most {
			d.fault(n, "%s: %d entries: at most %d", path, len(n.Content), most)
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

func (d *decoder) mapping(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "%swant a mapping", prefix(path))
		return
	}
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
			hint := ""
			if near, ok := nearest.Of(key.Value, names); ok {
				hint = fmt.Sprintf(": did you mean %s?", near)
			}
			d.fault(key, "%sunknown field %q%s", prefix(path), key.Value, hint)
		case seen[key.Value]:
			d.fault(key, "%sfield %q is there twice", prefix(path), key.Value)
		default:
			d.decode(value, join(path, key.Value), v.Field(field))
		}
		seen[key.Value] = true
	}
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, "%s: want a single value", path)
		return
	}
	text := n.Value
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return
	case reflect.Bool:
		switch text {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			d.fault(n, "%s: %q is not true or false", path, text)
		}
		return
	case reflect.Float64:
		var f float64
		if part, percent := strings.CutSuffix(text, "%"); percent {
			f, err = strconv.ParseFloat(part, 64)
			f /= 100
		} else {
			f, err = strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		}
		v.SetFloat(f)
	case reflect.Int:
		var i int64
		i, err = strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		v.SetInt(i)
	case reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 10, 64)
		v.SetUint(u)
	}
	if err != nil {
		d.fault(n, "%s: %q is not a number of this kind", path, text)
	}
}

// policies resolves the policies that clients take from policy files.
func (d *decoder) policies(s *storm.Scenario) {
	for i := range s.Fleets {
		d.policy(&s.Fleets[i].Client, fmt.Sprintf("fleets[%d].client.policy", i))
	}
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			d.policy(&s.Services[i].Calls[j].Client, fmt.Sprintf("services[%d].calls[%d].client.policy", i, j))
		}
	}
}

func (d *decoder) policy(c *storm.Client, path string) {
	if c.PolicyRef == "" {
		return
	}
	p, err := Policy(filepath.Dir(d.file), c.PolicyRef)
	if err != nil {
		d.fault(d.nodes[path], "%s: %v", path, err)
		return
	}
	c.Policy = &p
}

// Policy returns the policy that ref names: FILE#DEPENDENCY, or FILE when it
// has only one dependency. FILE is relative to dir.
func Policy(dir, ref string) (forbear.Policy, error) {
	name, dependency, named := strings.Cut(ref, "#")
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	f, err := policyfile.Load(name)
	if err != nil {
		return forbear.Policy{}, err
	}
	if !named {
		if len(f.Dependencies) != 1 {
			return forbear.Policy{}, fmt.Errorf("%s has %d dependencies: name one, as in %s#payments", name, len(f.Dependencies), ref)
		}
		dependency = f.Dependencies[0].Name
	}
	p, ok := f.Policy(dependency)
	if !ok {
		return forbear.Policy{}, fmt.Errorf("%s has no dependency %q", name, dependency)
	}
	return p, nil
}
