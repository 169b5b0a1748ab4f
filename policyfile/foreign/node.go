package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile"
)

// documents parses YAML, or JSON, which is a subset of it. Several documents
// in one file are usual for Kubernetes.
func (r *reader) documents(data []byte) (roots []*yaml.Node, err error) {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.file.Name, err)
	}
	for {
		var doc yaml.Node
		switch err := loader.Load(&doc); {
		// The end of the file; an empty file has no documents and no
		// findings.
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			if e, ok := errors.AsType[*yaml.LoadError](err); ok && e.Mark.Line > 0 {
				return nil, fmt.Errorf("%s:%d:%d: not YAML: %s", r.file.Name, e.Mark.Line, max(e.Mark.Column, 1), e.Message)
			}
			return nil, fmt.Errorf("%s: not YAML: %w", r.file.Name, err)
		}
		if len(doc.Content) == 1 {
			roots = append(roots, doc.Content[0])
		}
	}
}

// get returns the value of the first of the keys that n has, or nil. It is
// nil for anything but a mapping: adapters can ask for a path without
// checking each step.
func get(n *yaml.Node, keys ...string) *yaml.Node {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for _, key := range keys {
		// The first of two equal keys: readers differ in what they do with
		// a repeated key.
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return resolve(n.Content[i+1])
			}
		}
	}
	return nil
}

// path is get for nested keys, in either spelling of protobuf's JSON form.
func path(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		n = get(n, key, camel(key))
	}
	return n
}

// camel turns retry_policy into retryPolicy, the other spelling of protobuf.
func camel(key string) string {
	var b []byte
	up := false
	for i := range len(key) {
		switch c := key[i]; {
		case c == '_':
			up = true
		case up && c >= 'a' && c <= 'z':
			b, up = append(b, c-'a'+'A'), false
		default:
			b, up = append(b, c), false
		}
	}
	return string(b)
}

// resolve follows aliases a bounded number of times: these files are not
// checked for loops as policy files are.
func resolve(n *yaml.Node) *yaml.Node {
	const most = 100
	for range most {
		if n == nil || n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

// items returns the members of a list, and none for anything else.
func items(n *yaml.Node) []*yaml.Node {
	if n = resolve(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// text returns a scalar's text, and "" for anything else.
func text(n *yaml.Node) string {
	if n = resolve(n); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// number reads a number; JSON's strings with digits in them count too, as
// protobuf allows them.
func number(n *yaml.Node) (float64, bool) {
	v, err := strconv.ParseFloat(text(n), 64)
	return v, err == nil
}

// span reads a duration such as "1.5s", the form of protobuf's JSON. A
// negative one does not count as read.
func span(n *yaml.Node) (time.Duration, bool) {
	v, err := time.ParseDuration(text(n))
	return v, err == nil && v >= 0
}

// place is where a value stands in the file.
func (r *reader) place(n *yaml.Node) policyfile.Position { return r.at(n.Line, n.Column) }

// duration reads a duration that the file may leave out: what into has then is the
// default. One that cannot be read is zero.
func (r *reader) duration(d *policyfile.Dependency, field string, n *yaml.Node, into *time.Duration) {
	if n != nil {
		d.SetPlace(field, r.place(n))
		*into, _ = span(n)
	}
}

// walk calls visit for every mapping below n. Each is visited once, which
// also bounds the work when aliases multiply the file.
func walk(n *yaml.Node, visit func(*yaml.Node)) {
	seen := map[*yaml.Node]bool{}
	var step func(*yaml.Node)
	step = func(n *yaml.Node) {
		if n = resolve(n); n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.Kind == yaml.MappingNode {
			visit(n)
		}
		for _, c := range n.Content {
			step(c)
		}
	}
	step(n)
}
