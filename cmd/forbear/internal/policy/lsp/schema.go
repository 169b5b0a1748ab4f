package lsp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/forbear-go/forbear/policyfile"
)

// schema is as much of a JSON Schema as policy files' has.
type schema struct {
	Description string             `json:"description"`
	Type        string             `json:"type"`
	Default     any                `json:"default"`
	Const       any                `json:"const"`
	Enum        []any              `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
	// Additional is the schema of what has a name of the user's, or false.
	Additional json.RawMessage `json:"additionalProperties"`
	Items      *schema         `json:"items"`
	OneOf      []*schema       `json:"oneOf"`
	Required   []string        `json:"required"`

	names *schema // Additional, where it is a schema
}

// policySchema is that of a policy file, which is read once.
var policySchema = sync.OnceValue(func() *schema {
	s := &schema{}
	if err := s.read(policyfile.Schema()); err != nil {
		panic(err) // it is part of the program, and the tests read it
	}
	return s
})

func (s *schema) read(data []byte) error {
	if err := json.Unmarshal(data, s); err != nil {
		return err
	}
	return s.resolve()
}

// resolve reads the schemas of names in and below s.
func (s *schema) resolve() error {
	if len(s.Additional) > 0 && s.Additional[0] == '{' {
		s.names = &schema{}
		if err := s.names.read(s.Additional); err != nil {
			return err
		}
	}
	below := slices.AppendSeq(slices.Clone(s.OneOf), maps.Values(s.Properties))
	if s.Items != nil {
		below = append(below, s.Items)
	}
	for _, b := range below {
		if err := b.resolve(); err != nil {
			return err
		}
	}
	return nil
}

// at returns the schema of a path, or nil.
func (s *schema) at(path []string) *schema {
	for _, name := range path {
		if s = s.step(name); s == nil {
			return nil
		}
	}
	return s
}

func (s *schema) step(name string) *schema {
	if name == listItem && s.Items != nil {
		return s.Items
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	for _, one := range s.OneOf {
		if found := one.step(name); found != nil {
			return found
		}
	}
	if name == listItem {
		return nil
	}
	return s.names
}

// keys returns the keys that the schema names.
func (s *schema) keys() map[string]*schema {
	all := maps.Clone(s.Properties)
	for _, one := range s.OneOf {
		if all == nil {
			all = map[string]*schema{}
		}
		maps.Copy(all, one.keys())
	}
	return all
}

// value is one of the values that a key may have, where they can be counted.
type value struct{ text, description string }

// values returns them in the order of the schema, each once.
func (s *schema) values() (all []value) {
	add := func(v any, description string) {
		text := fmt.Sprint(v)
		if !slices.ContainsFunc(all, func(known value) bool { return known.text == text }) {
			all = append(all, value{text, description})
		}
	}
	for _, v := range s.Enum {
		add(v, "")
	}
	if s.Const != nil {
		add(s.Const, s.Description)
	}
	if s.Type == "boolean" {
		add(true, "")
		add(false, "")
	}
	for _, one := range s.OneOf {
		for _, v := range one.values() {
			add(v.text, v.description)
		}
	}
	return all
}

// detail names what a value is, as "integer" or "string or object"; "" where its
// values are counted.
func (s *schema) detail() string {
	var kinds []string
	add := func(kind string) {
		if kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	add(s.Type)
	for _, one := range s.OneOf {
		add(one.detail())
	}
	return strings.Join(kinds, " or ")
}

// about says in Markdown what a key means.
func (s *schema) about() string {
	parts := []string{escape(s.Description)}
	if s.Default != nil {
		parts = append(parts, "Default: `"+inline(s.Default)+"`")
	}
	if values := s.values(); len(values) > 0 {
		var texts []string
		for _, v := range values {
			texts = append(texts, "`"+v.text+"`")
		}
		parts = append(parts, "Values: "+strings.Join(texts, ", "))
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n\n")
}

// inline writes a default as it may stand in a file.
func inline(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var texts []string
	for _, item := range list {
		texts = append(texts, fmt.Sprint(item))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// escape keeps a text from being read as Markdown: names of the user's may be in it.
func escape(text string) string {
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "\\<", "#", "\\#").Replace(text)
}
