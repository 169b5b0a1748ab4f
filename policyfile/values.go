package policyfile

import (
	"cmp"
	"encoding"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
)

// values returns the readers of a struct's plain values, under their JSON names,
// which Marshal and the schema go by as well. In faults prefix comes before a name.
func (d *decoder) values(prefix string, into any) fields {
	all := reflect.ValueOf(into).Elem()
	known := make(fields, 2*all.NumField()) // its reader adds to them
	for f, v := range all.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		what := prefix + name
		switch p := v.Addr().Interface().(type) {
		case *bool:
			known[name] = func(v *yaml.Node) { d.Flag(v, what, p) }
		case *int:
			known[name] = func(v *yaml.Node) { d.count(v, what, cmp.Or(instead[what], "leave it out for the default"), p) }
		case *float64:
			known[name] = func(v *yaml.Node) { d.ratio(v, what, p) }
		case *time.Duration:
			known[name] = func(v *yaml.Node) { d.duration(v, what, p) }
		case *string:
			known[name] = func(v *yaml.Node) { d.Text(v, what, p) }
		case *forbear.KeyMode:
			known[name] = func(v *yaml.Node) {
				if i, ok := d.Choice(v, what, enum(f.Type)...); ok {
					*p = forbear.KeyMode(enum(f.Type)[i])
				}
			}
		case encoding.TextUnmarshaler:
			known[name] = func(v *yaml.Node) {
				words := enum(f.Type) // seldom asked for, and not free
				if i, ok := d.Choice(v, what, words...); ok {
					_ = p.UnmarshalText([]byte(words[i])) // its own word
				}
			}
		}
	}
	return known
}

// instead is the hint where 0 stands for a count: zero means the default in a
// Policy, and its author meant none.
var instead = map[string]string{
	"max_retries":            "to allow no retry, write disabled: true",
	"max_attempts":           "to allow no retry, write disabled: true",
	"max_concurrent":         "leave it out to set no bound",
	"budget.min_retries":     "for no floor, write strict: true",
	"keys.max_length":        "leave it out when it is unknown",
	"idempotency.max_length": "leave it out when it is unknown",
}

// choices are the words of those choices that are strings.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[forbear.Jitter]():  {string(forbear.JitterFull), string(forbear.JitterDecorrelated)},
	reflect.TypeFor[forbear.KeyMode](): {string(forbear.KeyReuse), string(forbear.KeyGenerate), string(forbear.KeyRefuse)},
}

// enum lists the names of a type that writes itself as text, from 0 on,
// until one cannot be read back. "default" is left out: a file says it by
// saying nothing.
func enum(t reflect.Type) (names []string) {
	if choices[t] != nil {
		return choices[t]
	}
	for i := range uint64(16) {
		v := reflect.New(t)
		v.Elem().SetUint(i)
		text, err := v.Elem().Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			break
		}
		back := reflect.New(t)
		if back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text) != nil {
			break
		}
		if string(text) != "default" {
			names = append(names, string(text))
		}
	}
	return names
}
