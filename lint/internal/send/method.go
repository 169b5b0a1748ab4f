package send

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Methods returns what decides the HTTP method that v holds: v is a method, a
// request, or a value of one's own that carries either. Each result has a method,
// or names the parameter that a caller chooses it by.
//
// A request is followed back to where it was built: through copies, variables
// that a literal captures, fields, and the functions that make or change it. What
// cannot be followed is left out.
func Methods(s *fact.Scope, v ssa.Value) []fact.Send {
	t := &tracer{known: s.Known, seen: map[ssa.Value]bool{}}
	t.visit(v, 0, 0)
	return t.found
}

// Made returns which methods the results of a function carry, for those who call
// it.
func Made(s *fact.Scope) []fact.Send {
	results := s.Fn.Signature.Results()
	var which []int
	for i := range results.Len() {
		if t := results.At(i).Type(); !dataflow.IsText(t) && carries(t) || dataflow.IsText(t) && methodWord.MatchString(s.Fn.Name()) {
			which = append(which, i)
		}
	}
	if len(which) == 0 {
		return nil
	}
	t := &tracer{known: s.Known, seen: map[ssa.Value]bool{}}
	for ret := range dataflow.Instrs[*ssa.Return](s.Fn) {
		for _, i := range which {
			t.visit(ret.Results[i], 0, 0)
		}
	}
	return t.found
}

// methodWord marks the variables, fields and functions that hold an HTTP method.
var methodWord = regexp.MustCompile(`(?i)^(get)?(http|req|request)?_?(method|verb)(s|name)?$`)

// NamesMethod reports whether a name is that of an HTTP method, or of several.
func NamesMethod(name string) bool { return methodWord.MatchString(name) }

// carries reports whether a value of type t decides the method of a request: a
// string may be one, a request has one, and a struct may have a field of either
// kind.
func carries(t types.Type) bool { return dataflow.IsText(t) || carriesIn(t, 2) }

// carriesIn is carries for structs. The depth keeps it from going around.
func carriesIn(t types.Type, depth int) bool {
	if IsRequest(t) {
		return true
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth == 0 {
		return false
	}
	for f := range s.Fields() {
		if dataflow.IsText(f.Type()) && methodWord.MatchString(f.Name()) || !dataflow.IsText(f.Type()) && carriesIn(f.Type(), depth-1) {
			return true
		}
	}
	return false
}

// isMethodField reports whether a field of this name and type leads on to the
// method.
func isMethodField(v ssa.Value) bool {
	t := v.Type()
	if p, ok := t.Underlying().(*types.Pointer); ok { // an address of a field
		if dataflow.IsText(p.Elem()) {
			return methodWord.MatchString(dataflow.FieldOf(v))
		}
		t = p.Elem()
	}
	if dataflow.IsText(t) {
		return methodWord.MatchString(dataflow.FieldOf(v))
	}
	return carriesIn(t, 2)
}

// tracer follows one value back. It looks at sixty values at most: code in which
// a method takes a longer way is not judged.
type tracer struct {
	known *fact.Table
	seen  map[ssa.Value]bool
	found []fact.Send
	body  bool // a request on the way was made with one
}

// add notes a method, or the parameter that decides it.
func (t *tracer) add(snd fact.Send) {
	snd.Body = snd.Body || t.body
	t.found = fact.Add(t.found, snd)
}

// visit follows v. outer counts the functions around the first value that were
// entered through captured variables, calls the calls that it came through.
func (t *tracer) visit(v ssa.Value, outer, calls int) {
	if v == nil || t.seen[v] || len(t.seen) > 60 {
		return
	}
	t.seen[v] = true
	if s, ok := dataflow.ConstString(v); ok {
		// A method that is empty is GET, as net/http has it.
		if s == "" {
			s = "GET"
		}
		t.add(fact.Send{Method: strings.ToUpper(s), Param: -1, Depth: calls})
		return
	}
	switch v := v.(type) {
	case *ssa.Parameter:
		if !t.stored(v, outer, calls) && carries(v.Type()) {
			t.add(fact.Send{Param: slices.Index(v.Parent().Params, v), Outer: outer, Depth: calls})
		}
	case *ssa.FreeVar:
		for _, b := range bindings(v) {
			t.visit(b, outer+1, calls)
		}
	case *ssa.Phi:
		for _, e := range v.Edges {
			t.visit(e, outer, calls)
		}
	case *ssa.Extract:
		t.stored(v, outer, calls)
		t.visit(v.Tuple, outer, calls)
	case *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.ChangeType, *ssa.Convert, *ssa.TypeAssert, *ssa.Field:
		t.visit(dataflow.Operand(v), outer, calls)
	case *ssa.Alloc:
		t.load(v, outer, calls)
	case *ssa.UnOp:
		if v.Op == token.MUL {
			t.load(v.X, outer, calls)
		}
	case *ssa.Call:
		t.stored(v, outer, calls)
		t.call(v, outer, calls)
	}
}

// load follows what is read from an address.
func (t *tracer) load(addr ssa.Value, outer, calls int) {
	switch a := addr.(type) {
	case *ssa.Alloc:
		t.stored(a, outer, calls)
		for held := range dataflow.Refs[*ssa.UnOp](a) { // a pointer in a variable that a literal captures
			t.stored(held, outer, calls)
		}
		for _, s := range t.known.Scope(a.Parent()).StoresTo(a) {
			t.visit(s.Val, outer, calls)
		}
	case *ssa.FreeVar:
		for _, s := range t.known.Scope(a.Parent()).StoresTo(a) {
			t.visit(s.Val, outer, calls)
		}
		for _, b := range bindings(a) {
			t.load(b, outer+1, calls)
		}
	case *ssa.FieldAddr:
		if !isMethodField(a) {
			return
		}
		for _, s := range t.known.Scope(a.Parent()).StoresTo(a) {
			t.visit(s.Val, outer, calls)
		}
		if base, ok := a.X.(*ssa.FieldAddr); ok {
			t.load(base, outer, calls)
			return
		}
		t.visit(a.X, outer, calls)
	}
}

// stored follows what is stored in the fields of v that hold a method, by this
// function or by one that is called with v. It reports whether the function
// begins with such a store, so that what v held before does not matter.
func (t *tracer) stored(v ssa.Value, outer, calls int) (certain bool) {
	for fa := range dataflow.Refs[*ssa.FieldAddr](v) {
		if !isMethodField(fa) {
			continue
		}
		for s := range dataflow.Refs[*ssa.Store](fa) {
			if s.Addr == ssa.Value(fa) {
				t.visit(s.Val, outer, calls)
				certain = certain || s.Block().Index == 0
			}
		}
		t.stored(fa, outer, calls)
	}
	for c := range dataflow.Refs[*ssa.Call](v) {
		i := slices.Index(c.Common().Args, v)
		if i < 0 {
			continue
		}
		if dataflow.CalleeName(c.Common()) == "SetMethod" && i+1 < len(c.Common().Args) {
			t.visit(c.Common().Args[i+1], outer, calls)
		}
		if fn := t.known.Body(c.Common()); fn != nil && i < len(fn.Params) {
			t.setter(fn, i, c, outer, calls)
		}
	}
	return certain
}

// setter follows what fn stores in the method of its parameter i when it is
// called by c: func (b *builder) Verb(v string) { b.verb = v }.
func (t *tracer) setter(fn *ssa.Function, i int, c *ssa.Call, outer, calls int) {
	for fa := range dataflow.Refs[*ssa.FieldAddr](fn.Params[i]) {
		if !isMethodField(fa) {
			continue
		}
		for s := range dataflow.Refs[*ssa.Store](fa) {
			switch val := dataflow.Strip(s.Val).(type) {
			case *ssa.Const:
				t.visit(val, outer, calls+1)
			case *ssa.Parameter:
				if j := slices.Index(fn.Params, val); j < len(c.Common().Args) {
					t.visit(c.Common().Args[j], outer, calls+1)
				}
			}
		}
	}
}

// call follows the result of a call to what it was made of.
func (t *tracer) call(c *ssa.Call, outer, calls int) {
	com := c.Common()
	if i := builtBy(com); i >= 0 {
		t.body = t.body || givenBody(com)
		t.visit(com.Args[i], outer, calls)
		return
	}
	if inner := t.known.Of(com); inner != nil {
		made := inner.Makes
		if len(made) == 0 && IsRequest(resultType(com)) {
			made = inner.Sends // it builds one, and only that is known
		}
		for _, m := range made {
			t.body = t.body || m.Body
			switch {
			case m.Param < 0 || m.Outer > 0:
				m.Depth += calls + 1
				if m.Outer > 0 {
					m.Outer += outer - 1
				}
				t.add(m)
			case m.Param < len(com.Args):
				t.visit(com.Args[m.Param], outer, calls+1)
			}
		}
		if len(made) > 0 {
			return
		}
	}
	// A function that yields what it was given, of the same type, has changed
	// something else in it.
	for _, a := range com.Args {
		if !dataflow.IsText(a.Type()) && types.Identical(a.Type(), resultType(com)) && carriesIn(a.Type(), 2) {
			t.visit(a, outer, calls)
		}
	}
}

// builtBy returns the argument by which a function of a library decides the
// method of the request or of the text that it yields, or -1.
func builtBy(c *ssa.CallCommon) int {
	name, pkg := dataflow.CalleeName(c), dataflow.CalleePkg(c)
	i := -1
	switch {
	case (pkg == "net/http" || pkg == retryable) && name == "NewRequest",
		(pkg == "net/http" || pkg == retryable) && (name == "WithContext" || name == "Clone" || name == "FromRequest"),
		pkg == "strings" && (name == "ToUpper" || name == "TrimSpace"):
		i = 0
	case (pkg == "net/http" || pkg == retryable) && name == "NewRequestWithContext":
		i = 1
	}
	if i >= len(c.Args) {
		return -1
	}
	return i
}

// resultType is the type of a call's first result, or an empty tuple.
func resultType(c *ssa.CallCommon) types.Type {
	if r := c.Signature().Results(); r.Len() > 0 {
		return r.At(0).Type()
	}
	return types.NewTuple()
}

// bindings returns what a literal has captured as v, where it is made.
func bindings(v *ssa.FreeVar) (found []ssa.Value) {
	fn := v.Parent()
	i := slices.Index(fn.FreeVars, v)
	if fn.Parent() == nil || i < 0 {
		return nil
	}
	for mc := range dataflow.Instrs[*ssa.MakeClosure](fn.Parent()) {
		if mc.Fn == ssa.Value(fn) {
			found = append(found, mc.Bindings[i])
		}
	}
	return found
}
