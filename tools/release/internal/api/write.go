package api

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// writer turns the exported objects of a package into lines.
type writer struct {
	pkg   *types.Package
	lines []string
}

func (w *writer) line(format string, args ...any) {
	w.lines = append(w.lines, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

func (w *writer) object(obj types.Object) {
	switch o := obj.(type) {
	case *types.Const:
		w.line("const %s %s = %s", o.Name(), w.of(o.Type()), short(o.Val().ExactString()))
	case *types.Var:
		w.line("var %s %s", o.Name(), w.of(o.Type()))
	case *types.Func:
		w.line("func %s%s", o.Name(), w.signature(o.Signature()))
	case *types.TypeName:
		w.typeName(o)
	}
}

// short leaves out the value of a constant that is a text for people.
func short(value string) string {
	if len(value) > 120 {
		return "..."
	}
	return value
}

func (w *writer) typeName(o *types.TypeName) {
	if alias, ok := o.Type().(*types.Alias); ok {
		w.line("type %s%s = %s", o.Name(), w.parameters(alias.TypeParams()), w.of(alias.Rhs()))
		return
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return
	}
	head := "type " + o.Name() + w.parameters(named.TypeParams())
	switch u := named.Underlying().(type) {
	case *types.Struct:
		w.line("%s struct", head)
		w.fields(o.Name(), u)
	case *types.Interface:
		w.methods(o.Name(), head, u)
		return
	default:
		w.line("%s %s", head, w.of(u))
	}
	// What can be compared may be the key of a map.
	if named.TypeParams().Len() == 0 && types.Comparable(named) {
		w.line("type %s is comparable", o.Name())
	}
	w.methodSet(o.Name(), named)
}

func (w *writer) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case !f.Exported():
		case f.Embedded():
			w.line("type %s struct, embedded %s", name, w.of(f.Type()))
		default:
			w.line("type %s struct, %s %s", name, f.Name(), w.of(f.Type()))
		}
	}
}

// methods writes an interface on one line: any method more is a change for those who
// implement it. Where no one else can, for its methods that are not exported, each is a
// line of its own.
func (w *writer) methods(name, head string, i *types.Interface) {
	var all []string
	for t := range i.EmbeddedTypes() {
		if _, method := t.Underlying().(*types.Interface); !method {
			all = append(all, w.of(t)) // a union of a constraint
		}
	}
	closed := false
	for m := range i.Methods() {
		if m.Exported() {
			all = append(all, m.Name()+w.signature(m.Signature()))
		} else {
			closed = true
		}
	}
	if !closed {
		slices.Sort(all)
		w.line("%s interface { %s }", head, strings.Join(all, "; "))
		return
	}
	w.line("%s interface { unexported methods }", head)
	for _, m := range all {
		w.line("type %s interface, %s", name, m)
	}
}

// methodSet writes the methods that values have, and those that need a pointer, with
// those of embedded types.
func (w *writer) methodSet(name string, named *types.Named) {
	ofValue := types.NewMethodSet(named)
	for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		m := sel.Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		receiver := "*" + name
		if ofValue.Lookup(m.Pkg(), m.Name()) != nil {
			receiver = name
		}
		w.line("method (%s) %s%s", receiver, m.Name(), w.signature(m.Signature()))
	}
}

// signature writes parameters and results without their names, which anyone may change.
func (w *writer) signature(s *types.Signature) string {
	return w.parameters(s.TypeParams()) + strings.TrimPrefix(w.of(s), "func")
}

// unnamed rebuilds a type without the names of parameters in it.
func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, tuple(t.Params()), tuple(t.Results()), t.Variadic())
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Array:
		return types.NewArray(unnamed(t.Elem()), t.Len())
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), unnamed(t.Elem()))
	default:
		return t
	}
}

func tuple(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", unnamed(v.Type())))
	}
	return types.NewTuple(vars...)
}

func (w *writer) parameters(l *types.TypeParamList) string {
	if l.Len() == 0 {
		return ""
	}
	var all []string
	for p := range l.TypeParams() {
		all = append(all, p.Obj().Name()+" "+w.of(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// of writes a type, with the names of other packages in front of theirs.
func (w *writer) of(t types.Type) string {
	return types.TypeString(unnamed(t), func(p *types.Package) string {
		if p == w.pkg {
			return ""
		}
		return p.Name()
	})
}
