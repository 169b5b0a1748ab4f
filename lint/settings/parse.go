package settings

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Parse reads settings, as YAML or JSON; name stands for them in faults. Unknown
// keys and bad values are faults, and all of them are returned at once, each with
// its line and column. An empty file holds the defaults. Values are checked once
// all keys and types are right: their faults would only repeat those.
func Parse(name string, src []byte) (*Settings, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, fmt.Errorf("settings %s: %w", name, err)
	}
	s := &Settings{}
	if len(doc.Content) == 0 {
		return s, nil
	}
	c := checker{name: name, root: doc.Content[0]}
	err := c.root.Load(s, yaml.WithKnownFields())
	list, ok := errors.AsType[*yaml.LoadErrors](err)
	switch {
	case ok:
		for _, e := range list.Errors {
			c.fault(&yaml.Node{Line: e.Mark.Line, Column: e.Mark.Column}, "%s", inWords(e.Message))
		}
	case err != nil:
		return nil, fmt.Errorf("settings %s: %w", name, err)
	default:
		c.check(s)
	}
	return s, errors.Join(c.errs...)
}

var (
	unknownRE = regexp.MustCompile(`^field (.*) not found in type .*$`)
	goWords   = strings.NewReplacer("cannot construct", "cannot read", "!!", "", "[]string", "a list", "[]config.Pattern", "a list", "settings.Settings", "settings")
)

// inWords puts a message of the decoder, which speaks of Go types, in a user's
// words.
func inWords(message string) string {
	if m := unknownRE.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("unknown key %q", m[1]) + nearest.Hint(m[1], keys(), "")
	}
	return goWords.Replace(message)
}

// keys lists the keys of all parts of the settings.
func keys() (names []string) {
	for _, t := range []reflect.Type{
		reflect.TypeFor[Settings](), reflect.TypeFor[Dependency](), reflect.TypeFor[Waiver](), reflect.TypeFor[table.Entry](),
	} {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// checker gathers the faults of one file. The nodes keep the lines and columns that
// decoded values have lost.
type checker struct {
	name string
	root *yaml.Node
	errs []error
}

// fault notes a fault with its place. The text says what is wanted instead.
func (c *checker) fault(n *yaml.Node, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s:%d:%d: %s", c.name, max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...)))
}

// node returns the node at a path of keys and indices, or the nearest around. It
// never returns nil, so that every fault has a place.
func (c *checker) node(path ...any) *yaml.Node {
	n := c.root
	for _, step := range path {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := n
		switch step := step.(type) {
		case string:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Kind == yaml.MappingNode && n.Content[i].Value == step {
					next = n.Content[i+1]
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
			}
		}
		n = next
	}
	return n
}
