package page

import (
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
)

// value returns the value of a pipeline, which is one command: it calls a function, or is
// the one value.
func (x *execution) value(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	c := p.Cmds[0]
	if len(p.Cmds) > 1 {
		fail("%v: a pipeline is not supported", p)
	}
	name, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok {
		if len(c.Args) > 1 {
			fail("%v is not a function", c)
		}
		return x.operand(dot, c.Args[0])
	}
	var args []reflect.Value
	for i, a := range c.Args[1:] {
		v := x.operand(dot, a)
		// As in Go, what follows is not looked at when it cannot matter.
		if name.Ident == "and" || name.Ident == "or" {
			if last := i == len(c.Args)-2; last || truth(v) == (name.Ident == "or") {
				return v
			}
		}
		args = append(args, v)
	}
	return call(name.Ident, x.set.funcs[name.Ident], args)
}

// call calls a function, with arguments that are converted to what it wants where only
// the name of a type differs.
func call(name string, f reflect.Value, args []reflect.Value) reflect.Value {
	t := f.Type()
	if n := t.NumIn(); len(args) < n-1 || len(args) != n && !t.IsVariadic() {
		fail("%s has %d arguments", name, len(args))
	}
	for i, a := range args {
		want := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= t.NumIn()-1 {
			want = want.Elem()
		}
		switch {
		case !a.IsValid():
			a = reflect.Zero(want)
		case !a.Type().AssignableTo(want):
			a = value(a)
			if !a.Type().ConvertibleTo(want) || want.Kind() == reflect.String && a.Kind() != reflect.String {
				fail("%s: argument %d is of type %v, not %v", name, i+1, a.Type(), want)
			}
			a = a.Convert(want)
		}
		args[i] = a
	}
	out := f.Call(args)
	if len(out) == 2 && !out[1].IsNil() {
		fail("%s: %v", name, out[1].Interface().(error))
	}
	return out[0]
}

// operand returns the value of an argument.
func (x *execution) operand(dot reflect.Value, node parse.Node) reflect.Value {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode:
		for i := len(x.vars) - 1; i >= 0; i-- {
			if x.vars[i].name == n.Ident[0] {
				return fields(x.vars[i].value, n.Ident[1:])
			}
		}
		fail("no variable %s", n.Ident[0])
	case *parse.PipeNode:
		return x.value(dot, n)
	case *parse.StringNode:
		return reflect.ValueOf(n.Text)
	case *parse.NumberNode:
		if n.IsInt {
			return reflect.ValueOf(int(n.Int64))
		}
	}
	fail("%v is not supported", node)
	return reflect.Value{}
}

// fields follows the names of fields, or of keys of a map. A field of nil is nil.
func fields(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		v = value(v)
		if !v.IsValid() {
			return v
		}
		switch of := v; v.Kind() {
		case reflect.Struct:
			if v = of.FieldByName(name); !v.IsValid() {
				fail("%v has no field %s", of.Type(), name)
			}
		case reflect.Map:
			v = of.MapIndex(reflect.ValueOf(name).Convert(of.Type().Key()))
		default:
			fail("%v has no field %s", of.Type(), name)
		}
	}
	return v
}

// value returns what a pointer or an interface holds; the zero Value for nil.
func value(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// truth reports whether a value is not empty.
func truth(v reflect.Value) bool {
	switch v = value(v); v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		return true
	}
	return !v.IsZero()
}

// builtins are the functions that each template has.
var builtins = map[string]any{
	"and": func(_ any, _ ...any) any { return nil }, // see command
	"or":  func(_ any, _ ...any) any { return nil },
	"not": func(v any) bool { return !truth(reflect.ValueOf(v)) },
	"len": func(v any) int { return value(reflect.ValueOf(v)).Len() },
	"eq": func(a any, b ...any) bool {
		return slices.ContainsFunc(b, func(o any) bool { return plain(a) == plain(o) })
	},
	"ne":     func(a, b any) bool { return plain(a) != plain(b) },
	"gt":     func(a, b int) bool { return a > b },
	"printf": fmt.Sprintf,
}

// plain returns a value as text: names that are types of their own are compared by it.
func plain(v any) string { return fmt.Sprint(v) }
