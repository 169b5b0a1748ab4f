// Package page executes templates in the syntax of html/template.
//
// That package is not used itself, since text/template calls methods by their names: the
// linker then keeps every exported method of every type, which is ten megabytes of
// forbear's. These templates call no methods. All that they write is escaped, and so
// they write only where one way of escaping is right: into text, and into attributes
// in double quotes. The tests hold what is written against html/template.
package page

import (
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
)

// Markup is HTML that is written as it is.
type Markup string

// Set is a set of templates, by their names. It is safe for concurrent use.
type Set struct {
	trees map[string]*parse.Tree
	funcs map[string]reflect.Value
}

// Parse reads the templates of the files that a pattern names. Each file may define
// several. A function returns one value, or one and an error.
func Parse(files fs.FS, pattern string, funcs map[string]any) (*Set, error) {
	s := &Set{trees: map[string]*parse.Tree{}, funcs: map[string]reflect.Value{}}
	for _, list := range []map[string]any{builtins, funcs} {
		for name, f := range list {
			s.funcs[name] = reflect.ValueOf(f)
		}
	}
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		trees, err := parse.Parse(name, string(text), "", "", builtins, funcs)
		if err != nil {
			return nil, err
		}
		maps.Copy(s.trees, trees)
	}
	return s, nil
}

// Names returns the names of all templates.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.trees)) }

// Execute returns what the named template writes for data.
func (s *Set) Execute(name string, data any) (text Markup, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("template %s: %v", name, why)
		}
	}()
	var b strings.Builder
	x := &execution{set: s, to: &b}
	x.template(name, reflect.ValueOf(data))
	return Markup(b.String()), nil
}

// execution is one run of a template. Variables are found from the last one down. A scope is
// a copy, whose variables end with it.
type execution struct {
	set  *Set
	to   *strings.Builder
	vars []variable
}

type variable struct {
	name  string
	value reflect.Value
}

// fail ends the execution, as what reflect cannot do does.
func fail(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// template writes a template, whose variables are its own.
func (x *execution) template(name string, dot reflect.Value) {
	tree := x.set.trees[name]
	if tree == nil {
		fail("no template %q", name)
	}
	inner := &execution{set: x.set, to: x.to, vars: []variable{{"$", dot}}}
	inner.walk(dot, tree.Root)
}

// walk writes a node.
func (x *execution) walk(dot reflect.Value, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		for _, inner := range n.Nodes {
			x.walk(dot, inner)
		}
	case *parse.TextNode:
		x.to.Write(n.Text)
	case *parse.ActionNode:
		if v := x.pipe(dot, n.Pipe); len(n.Pipe.Decl) == 0 {
			x.write(v)
		}
	case *parse.IfNode:
		inner := *x
		inner.branch(dot, dot, inner.pipe(dot, n.Pipe), &n.BranchNode)
	case *parse.WithNode:
		inner := *x
		v := inner.pipe(dot, n.Pipe)
		inner.branch(v, dot, v, &n.BranchNode)
	case *parse.RangeNode:
		x.each(dot, n)
	case *parse.TemplateNode:
		x.template(n.Name, x.pipe(dot, n.Pipe))
	default:
		fail("%v is not supported", node)
	}
}

// branch writes one of two lists, each for its dot.
func (x *execution) branch(dot, otherwise, v reflect.Value, n *parse.BranchNode) {
	switch {
	case truth(v):
		x.walk(dot, n.List)
	case n.ElseList != nil:
		x.walk(otherwise, n.ElseList)
	}
}

// each writes the body of a range over a slice once for each element.
func (x *execution) each(dot reflect.Value, n *parse.RangeNode) {
	list := value(x.value(dot, n.Pipe))
	if !truth(list) {
		x.branch(dot, dot, list, &n.BranchNode)
		return
	}
	if list.Kind() != reflect.Slice {
		fail("range over %v", list.Type())
	}
	for i := range list.Len() {
		element, inner := list.Index(i), *x
		values := []reflect.Value{reflect.ValueOf(i), element} // one variable has the element
		for j, d := range n.Pipe.Decl {
			inner.vars = append(inner.vars, variable{d.Ident[0], values[2-len(n.Pipe.Decl)+j]})
		}
		inner.walk(element, n.List)
	}
}

// write writes a value as text.
func (x *execution) write(v reflect.Value) {
	if v = value(v); !v.IsValid() {
		return
	}
	if m, ok := v.Interface().(Markup); ok {
		x.to.WriteString(string(m))
		return
	}
	x.to.WriteString(escaper.Replace(fmt.Sprint(v.Interface())))
}

// escaper escapes for text and for attributes in double quotes, as html/template does.
var escaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// pipe returns the value of a pipeline, and declares its variables.
func (x *execution) pipe(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	if p.IsAssign {
		fail("%v: a variable is assigned, not declared", p)
	}
	v := x.value(dot, p)
	for _, d := range p.Decl {
		x.vars = append(x.vars, variable{d.Ident[0], v})
	}
	return v
}
