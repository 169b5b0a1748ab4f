package settings

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// Parse reads settings, as YAML or JSON; name stands for them in faults.
// Unknown keys and bad values are faults, and all of them are returned at once,
// each with its line and column.
// An empty file holds the defaults. Keys are checked first, then the types of
// the values, then the values: a fault of one step would only repeat itself in
// the next.
func Parse(name string, src []byte) (*Settings, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, fmt.Errorf("settings %s: %w", name, err)
	}
	s := &Settings{}
	if len(doc.Content) == 0 {
		return s, nil
	}
	p := parser{name: name, root: doc.Content[0]}
	p.keys(p.root, reflect.TypeFor[Settings]())
	if len(p.errs) == 0 {
		p.decode(s)
	}
	if len(p.errs) == 0 {
		p.check(s)
	}
	return s, errors.Join(p.errs...)
}

// parser gathers the faults of one file.
// The nodes keep the lines and columns that decoded values have lost.
type parser struct {
	name string
	root *yaml.Node
	errs []error
}

// fault notes a fault with its place. The text says what is wanted instead.
func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %s", p.name, max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...)))
}

// keys holds the keys below n to the fields of t.
// The decoder's own check of unknown keys stops at the first and knows no
// column.
func (p *parser) keys(n *yaml.Node, t reflect.Type) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			p.keys(item, t.Elem())
		}
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		known := fieldsOf(t)
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			typ, ok := known[key.Value]
			switch {
			case !ok:
				p.unknown(key, known)
			case seen[key.Value]:
				p.fault(key, "a second %s", key.Value)
			default:
				p.keys(n.Content[i+1], typ)
			}
			seen[key.Value] = true
		}
	case t.Kind() == reflect.Struct && n.Tag != "!!null":
		p.fault(n, "want a mapping of keys to values")
	}
}

// unknown notes a key that does not exist, with the nearest that does.
func (p *parser) unknown(key *yaml.Node, known map[string]reflect.Type) {
	names := slices.Sorted(maps.Keys(known))
	if near, ok := nearest.Of(key.Value, names); ok {
		p.fault(key, "unknown key %q: did you mean %s?", key.Value, near)
		return
	}
	p.fault(key, "unknown key %q: want one of %s", key.Value, strings.Join(names, ", "))
}

// fieldsOf returns the keys of a struct, inlined ones included.
// Fields without a yaml tag are no keys.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(opts, "inline"):
			maps.Copy(known, fieldsOf(f.Type))
		case name != "":
			known[name] = f.Type
		}
	}
	return known
}

// decode reads the values. The decoder's messages speak of Go types, so they are put into
// a user's words.
func (p *parser) decode(s *Settings) {
	err := p.root.Decode(s)
	list, ok := errors.AsType[*yaml.LoadErrors](err)
	switch {
	case ok:
		for _, e := range list.Errors {
			p.fault(&yaml.Node{Line: e.Mark.Line, Column: e.Mark.Column}, "%s", inWords.Replace(e.Message))
		}
	case err != nil:
		p.errs = append(p.errs, fmt.Errorf("settings %s: %w", p.name, err))
	}
}

var inWords = strings.NewReplacer("cannot construct", "cannot read", "!!", "", "[]string", "a list", "[]config.Pattern", "a list")

// node returns the node at a path of keys and indices, or the nearest around.
// It never returns nil, so that every fault has a place.
func (p *parser) node(path ...any) *yaml.Node {
	n := p.root
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

// check judges the values.
func (p *parser) check(s *Settings) {
	if _, err := s.Least(); err != nil {
		p.fault(p.node("confidence"), "%v", err)
	}
	for i, id := range s.Disable {
		if _, ok := lint.Explain(id); !ok {
			p.fault(p.node("disable", i), "rule %q is unknown: forbear lint --rules lists them", id)
		}
	}
	for i, h := range s.KeyHeaders {
		if !headerRE.MatchString(h) {
			p.fault(p.node("key_headers", i), "%q is no header's name", h)
		}
	}
	p.limits(&s.Limits)
	for i := range s.Dependencies {
		d := &s.Dependencies[i]
		if d.Name == "" {
			p.fault(p.node("dependencies", i), "a dependency needs a name")
		}
		p.patterns(d.Code, "dependencies", i)
		p.limits(&d.Limits, "dependencies", i)
	}
	for i, w := range s.Waivers {
		p.waiver(w, "waivers", i)
	}
	for i, e := range s.Libraries {
		if e == nil {
			p.fault(p.node("libraries", i), "an empty entry")
		} else if err := e.Compile(); err != nil {
			for line := range strings.Lines(err.Error()) {
				p.fault(p.node("libraries", i), "libraries: entry %d: %s", i+1, strings.TrimSpace(line))
			}
		}
	}
}

var (
	// A header's name is a token of RFC 9110 section 5.6.2.
	headerRE   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	standardRE = regexp.MustCompile(`^R-([1-8]|10)$`)
)

// patterns checks where a dependency or a waiver counts; the code is required,
// since nothing is meant to count everywhere by omission.
func (p *parser) patterns(list []Pattern, path ...any) {
	if len(list) == 0 {
		p.fault(p.node(path...), "code is missing: want patterns such as internal/payments/...")
	}
	for i, pattern := range list {
		if err := pattern.Check(); err != nil {
			p.fault(p.node(append(path, "code", i)...), "code: %v", err)
		}
	}
}

// limits checks what is said of attempts and responses.
func (p *parser) limits(l *Limits, path ...any) {
	at := func(more ...any) *yaml.Node { return p.node(slices.Concat(path, more)...) }
	if l.MaxAttempts < 0 {
		p.fault(at("max_attempts"), "max_attempts is %d: want at least 1, or nothing", l.MaxAttempts)
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"retryable", l.Retryable}, {"final", l.Final}} {
		for i, a := range list.names {
			if known := status.Names(); !slices.Contains(known, a) {
				p.fault(at(list.key, i), "%s: %q is not one of these: %s", list.key, a, strings.Join(known, ", "))
			}
		}
	}
	for i, a := range l.Final {
		if slices.Contains(l.Retryable, a) {
			p.fault(at("final", i), "%s is both retryable and final", a)
		}
	}
}

// waiver checks a waiver: it names a rule that may be lifted, some code, a
// reason and a last day. Certificates cannot be waived.
func (p *parser) waiver(w *Waiver, path ...any) {
	if w == nil {
		p.fault(p.node(path...), "an empty waiver")
		return
	}
	if _, ok := lint.Explain(w.Rule); !ok && !standardRE.MatchString(w.Rule) {
		why := "want a rule such as R-1 or FB1001"
		if w.Rule == "R-9" {
			why = "certificates cannot be waived"
		}
		p.fault(p.node(append(path, "rule")...), "rule is %q: %s", w.Rule, why)
	}
	p.patterns(w.Code, path...)
	if strings.TrimSpace(w.Reason) == "" {
		p.fault(p.node(path...), "a waiver needs a reason")
	}
	if _, err := time.Parse(time.DateOnly, string(w.Expires)); err != nil {
		p.fault(p.node(append(path, "expires")...), "expires is %q: want the last day, such as 2027-06-30", string(w.Expires))
	}
}
