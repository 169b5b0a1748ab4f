package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// schema is as much of a JSON Schema as the policy file's and the API's have.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"`
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Default     any                `json:"default"`
	Const       any                `json:"const"`
	Enum        []any              `json:"enum"`
	Pattern     string             `json:"pattern"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Properties  map[string]*schema `json:"properties"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	OneOf       []*schema          `json:"oneOf"`
	AllOf       []*schema          `json:"allOf"`
	Required    []string           `json:"required"`
}

// named returns the schema of the values of a map with free names, or nil.
func (s *schema) named() *schema {
	var of schema
	if len(s.Additional) == 0 || s.Additional[0] != '{' || json.Unmarshal(s.Additional, &of) != nil {
		return nil
	}
	return &of
}

// kind says in a word or two what a value of s is.
func (s *schema) kind() string {
	quoted := func(v any) string {
		switch v {
		case "":
			return "empty"
		case nil:
			return tick("null")
		}
		return tick(fmt.Sprint(v))
	}
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case s.Const != nil:
		return quoted(s.Const)
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum { // 1.2 and "1.2" are one word
			if word := quoted(v); !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		return strings.Join(words, ", ")
	case len(s.OneOf) > 0:
		var kinds []string
		for _, one := range s.OneOf {
			if k := one.kind(); !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
		return strings.Join(kinds, " or ")
	case len(s.AllOf) > 0:
		return s.AllOf[0].kind()
	case strings.Contains(s.Pattern, "ms|s|m|h"):
		return "duration"
	case strings.Contains(s.Pattern, "%"):
		return "percentage"
	case s.Type == "array":
		return strings.TrimSpace("list of " + s.Items.kind())
	case s.Type == "object" && s.named() != nil:
		return "map of " + s.named().kind()
	case s.Format != "":
		return s.Format
	case s.Type == nil:
		return "any"
	}
	if types, ok := s.Type.([]any); ok { // [integer null]
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(types), "[]"), " ", " or ")
	}
	return fmt.Sprint(s.Type)
}

// Policy returns the page of all keys of a policy file.
func Policy() (string, error) {
	var root schema
	if err := json.Unmarshal(policyfile.Schema(), &root); err != nil {
		return "", err
	}
	p := begin("Policy keys", "the schema of policy files")
	p.line("All keys of a policy file; [the guide](../guides/policy.md) shows examples, and editors use\n[the JSON Schema](../../policyfile/schema.json). Durations: `500ms`, `1s`, `2m`, `24h`, `8d`. Shares: `20%%` or `0.2`.\nDefaults are those of kind `sync`; [the rules](../rules.md) list the ranges.\n")
	sections := []struct{ key, title, about string }{
		{"dependencies", "A dependency", "Below `dependencies.NAME`: what the service calls."},
		{"webhooks", "A webhook endpoint", "Below `webhooks.NAME`: endpoints that the service sends webhooks to. All keys of a dependency, with these defaults:"},
		{"consumers", "A consumer", "Below `consumers.NAME`: queues that the service reads. All keys of a dependency, with these defaults:"},
		{"profiles", "A profile", "Below `profiles.NAME`: a policy for dependencies to extend. These keys, without defaults:"},
	}
	apart := map[string]bool{"gateway": true, "waivers": true}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		s := root.Properties[name]
		if slices.ContainsFunc(sections, func(s struct{ key, title, about string }) bool { return s.key == name }) || apart[name] {
			rows = append(rows, []string{tick(name), "see below", "", plain(s.Description)})
			continue
		}
		rows = append(rows, flat(name, s)...)
	}
	head := []string{"key", "value", "default", "meaning"}
	p.heading(2, "The file")
	p.table(head, rows)
	known := map[string]string{}
	for _, section := range sections {
		p.heading(2, section.title)
		p.line("%s\n", section.about)
		var rows [][]string
		for _, row := range keys(root.Properties[section.key].named()) {
			if same := strings.Join(row, "\x00"); section.key == "dependencies" {
				known[row[0]] = same
			} else if section.key == "profiles" || known[row[0]] == same {
				continue
			}
			rows = append(rows, row)
		}
		if len(rows) > 0 {
			p.table(head, rows)
		} else if section.key == "profiles" {
			var names []string
			for _, name := range slices.Sorted(maps.Keys(root.Properties["profiles"].named().Properties)) {
				names = append(names, tick(name))
			}
			p.line("%s.", strings.Join(names, ", "))
		}
	}
	p.heading(2, "The gateway")
	p.line("Below `gateway`: addresses and routes of `forbear serve`.\n")
	p.table(head, keys(root.Properties["gateway"]))
	p.heading(2, "A waiver")
	p.line("An item of `waivers`: a signed exception from a rule, with an end.\n")
	p.table(head, keys(root.Properties["waivers"].Items))
	return p.String(), nil
}

// keys lists the keys below s, with those inside of them behind a dot.
func keys(s *schema) (rows [][]string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		rows = append(rows, flat(name, s.Properties[name])...)
	}
	return rows
}

// flat lists one key, and what is inside of its value: a map's names are NAME, a
// list's items are [].
func flat(name string, s *schema) (rows [][]string) {
	byDefault := ""
	if s.Default != nil {
		byDefault = tick(fmt.Sprint(s.Default))
	}
	kind := strings.NewReplacer("map of object", "by name", "list of object", "list", "object", "keys below").Replace(s.kind())
	rows = append(rows, []string{tick(name), kind, byDefault, plain(s.Description)})
	inside := append([]*schema{s}, s.OneOf...)
	for _, one := range inside {
		for _, row := range keys(one) {
			rows = append(rows, below(name+".", row))
		}
		if of := one.named(); of != nil && len(of.Properties) > 0 {
			for _, row := range keys(of) {
				rows = append(rows, below(name+".NAME.", row))
			}
		}
		if one.Items != nil && len(one.Items.Properties) > 0 {
			for _, row := range keys(one.Items) {
				rows = append(rows, below(name+"[].", row))
			}
		}
	}
	return rows
}

// below puts a prefix before a row's key.
func below(prefix string, row []string) []string {
	return append([]string{tick(prefix + strings.Trim(row[0], "`"))}, row[1:]...)
}
