package policyfile

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// node returns v as a policy file has it: fields by their JSON names, zero
// ones left out, durations and shares as people write them. It is nil for a
// zero value.
//
// It is the one place that turns values into text. Marshal, Diff and
// Dependency.Value all use it, and so cannot disagree about how a value
// looks.
func node(v reflect.Value, field string) *yaml.Node {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		if x < 0 && (field == "body_idle" || field == "connection_age") {
			return plain("off")
		}
		return plain(FormatDuration(x))
	// Its fields say the opposite of the file's, so that it writes itself.
	case Ingress:
		return x.node()
	case Addresses:
		return x.node()
	case Endpoints:
		return x.node()
	case encoding.TextMarshaler:
		if text, err := x.MarshalText(); err == nil {
			return plain(string(text))
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if name, ok := strings.CutPrefix(v.String(), FromEnvironment+"/"); ok {
			return variable(name)
		}
		n := plain(v.String())
		if field == "signature" { // which keeps its line breaks
			n.Style = yaml.LiteralStyle
			return n
		}
		// A text is quoted unless it is clearly a word: 1e3 or 2026-01-01
		// would be read back as a number or a date.
		n.Style = yaml.DoubleQuotedStyle
		if isLabel(v.String()) && strings.Trim(v.String(), "0123456789.-_eExX") != "" && !slices.Contains(words, strings.ToLower(v.String())) {
			n.Style = 0
		}
		return n
	case reflect.Bool:
		return plain("true")
	case reflect.Float64:
		if strings.HasSuffix(field, "ratio") || strings.HasSuffix(field, "rate") || field == "min_success" {
			return plain(percent(v.Float()))
		}
		return plain(strconv.FormatFloat(v.Float(), 'f', -1, 64))
	case reflect.Int, reflect.Uint8:
		return plain(fmt.Sprint(v.Interface()))
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item := node(v.Index(i), field)
			if item == nil {
				item = plain("0s") // the first step of a schedule
			}
			list.Content = append(list.Content, item)
		}
		return list
	case reflect.Map:
		m := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			if item := node(v.MapIndex(k), field); item != nil {
				m.Content = append(m.Content, plain(k.String()), item)
			}
		}
		return m
	case reflect.Struct:
		m := &yaml.Node{Kind: yaml.MappingNode}
		structure(m, v)
		if len(m.Content) > 0 {
			return m
		}
	}
	return nil
}

// percent writes a share with the fewest digits that mean it: 0.07 as 7%, and not as
// what a hundred times that is in binary.
func percent(share float64) string {
	for digits := range 18 {
		text := strconv.FormatFloat(share*100, 'f', digits, 64)
		if v, err := strconv.ParseFloat(text, 64); err == nil && v/100 == share {
			return text + "%"
		}
	}
	return strconv.FormatFloat(share, 'f', -1, 64)
}

// words are those that YAML 1.1 or 1.2 takes for something other than text.
// Marshal quotes them, for readers other than this package.
var words = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none"}

// structure adds the fields of a struct to m. Those of an inline field stand
// beside the others, as forbear.Policy does in a Dependency. A section that both
// have, such as health, is one.
func structure(m *yaml.Node, v reflect.Value) {
	for f, value := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case options == "inline":
			structure(m, value)
		case name != "":
			if item := node(value, name); item != nil {
				add(m, name, item)
			}
		}
	}
}

// add adds a key to m, or what item holds to the section that m has under it. It
// compares keys only: a value, such as a service's name, may be the same word.
func add(m *yaml.Node, key string, item *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if section := m.Content[i+1]; m.Content[i].Value == key {
			section.Content = append(section.Content, item.Content...)
			return
		}
	}
	m.Content = append(m.Content, plain(key), item)
}

// plain is a scalar that is written without quotes.
func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// flatten lists the scalar fields of v by their path, as "backoff.cap", in
// the order of the struct. A list counts as one value.
func flatten(v any) (paths []string, values map[string]string) {
	values = map[string]string{}
	var walk func(n *yaml.Node, at string)
	walk = func(n *yaml.Node, at string) {
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], strings.TrimPrefix(at+"."+n.Content[i].Value, "."))
			}
		case yaml.SequenceNode:
			var items []string
			for _, c := range n.Content {
				items = append(items, c.Value)
			}
			paths, values[at] = append(paths, at), strings.Join(items, ", ")
		default:
			paths, values[at] = append(paths, at), n.Value
		}
	}
	if n := node(reflect.ValueOf(v), ""); n != nil {
		walk(n, "")
	}
	return paths, values
}
