package table

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Match is one place that an entry judges.
// Fields that do not apply to the kind of its entry are nil.
type Match struct {
	Entry *Entry
	Node  ast.Node
	Name  *ast.Ident     // the name that was used
	Call  *ast.CallExpr  // for calls
	Arg   ast.Expr       // the argument, or what is assigned to the field, that matters
	Value constant.Value // of Arg, if constant
}

// Report reports what the table's entries of verdict v find, and returns a
// predicate on calls: whether one is of a method of what was reported where it was
// set up, so that the call has nothing of its own to mend. The callee in the
// finding's identity comes from the entry, so that a renamed import does not change
// it.
func Report(p *rule.Pass, v Verdict) (reported func(*ssa.CallCommon) bool) {
	found := Find(p, v)
	for _, m := range found {
		// A poll may well have a fixed interval.
		c := m.Entry.confidence
		if v == Fixed && p.Polled(m.Node) {
			c = rule.Low
		}
		f := rule.Finding{Confidence: c, Pos: m.Node.Pos(), End: m.Node.End(), Message: m.Entry.Message}
		f.Fixes = m.fixes(p)
		f.Callees = []string{m.Entry.Package[0] + "." + m.Entry.Call + m.Entry.Value + m.Entry.Literal + m.Entry.Field}
		p.Report(f)
	}
	return func(c *ssa.CallCommon) bool {
		return c.Signature().Recv() != nil && slices.ContainsFunc(found, func(m Match) bool { return m.Entry.covers(dataflow.CalleePkg(c)) })
	}
}

// Find returns the places that the entries of verdict v match.
// Entries of other verdicts, and those whose library is not imported, cost
// nothing. A library does not use itself: where it builds one of its functions
// on another, its callers have yet to say what they want.
func Find(p *rule.Pass, v Verdict) []Match {
	var active []*Entry
	for _, e := range all() {
		if e.Verdict == v && e.imported(p.Pass.Pkg) && !e.covers(p.Pass.Pkg.Path()) {
			active = append(active, e)
		}
	}
	if len(active) == 0 {
		return nil
	}
	var found []Match
	for _, f := range p.Files {
		for _, d := range f.Decls {
			m := matcher{p: p, scope: d, active: active}
			for n := range ast.Preorder(d) {
				m.visit(n)
			}
			found = append(found, m.found...)
		}
	}
	return found
}

// imported reports whether a package imports one that e is about. Most packages
// import none, and are done with that.
// Versions of a library count, as the entry's patterns have them.
func (e *Entry) imported(pkg *types.Package) bool {
	return slices.ContainsFunc(pkg.Imports(), func(imp *types.Package) bool { return e.covers(imp.Path()) })
}

// covers reports whether e is about the package with the given path.
// A pattern never matches in the middle of a path element: a/b/... does not
// cover a/bc.
func (e *Entry) covers(path string) bool {
	return slices.ContainsFunc(e.Package, func(p string) bool {
		root, below := strings.CutSuffix(p, "/...")
		return path == root || below && dataflow.Under(path, root)
	})
}

// matcher walks one declaration.
// The declaration is the scope of conditions such as unless: options are usually
// set next to the call that they belong to.
type matcher struct {
	p      *rule.Pass
	scope  ast.Node
	active []*Entry
	found  []Match
	called map[*ast.Ident]bool
}

// visit looks at one node of the declaration. A function that is called is not
// its use as a value, so that calls are remembered before their names are seen.
func (m *matcher) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		if id := nameOf(n.Fun); id != nil {
			if m.called == nil {
				m.called = map[*ast.Ident]bool{}
			}
			m.called[id] = true
			m.each(id, func(e *Entry, name string) {
				if e.call != nil && e.call.MatchString(name) && m.argument(e, n) {
					m.add(Match{Entry: e, Node: n, Name: id, Call: n})
				}
			})
		}
	case *ast.SelectorExpr:
		if !m.called[n.Sel] {
			m.each(n.Sel, func(e *Entry, name string) {
				if e.value != nil && e.value.MatchString(name) {
					m.add(Match{Entry: e, Node: n, Name: n.Sel})
				}
			})
		}
	case *ast.CompositeLit:
		m.literal(n)
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			if len(n.Rhs) == len(n.Lhs) {
				m.assign(l, n.Rhs[i])
			}
		}
	}
}

// each calls f for the active entries about the package of the function that
// id names, with its name as entries spell it.
// Methods are spelled "Type.Method", whether the receiver is a pointer or not.
// A variable of a package that holds a function counts as one. A name that is
// not a function, such as a type in a conversion, is left out.
func (m *matcher) each(id *ast.Ident, f func(*Entry, string)) {
	fn := m.p.TypesInfo.Uses[id]
	if fn == nil || fn.Pkg() == nil {
		return
	}
	name := fn.Name()
	switch sig, ok := fn.Type().Underlying().(*types.Signature); fn := fn.(type) {
	case *types.Func:
		if recv := sig.Recv(); recv != nil {
			name = dataflow.TypeName(recv.Type()) + "." + name
		}
	case *types.Var:
		if !ok || fn.Parent() != fn.Pkg().Scope() {
			return
		}
	default:
		return
	}
	for _, e := range m.active {
		if e.covers(fn.Pkg().Path()) {
			f(e, name)
		}
	}
}

// nameOf is the name of the function that e calls, or nil. Instances are named
// by their generic function.
// A call of a literal or of a result of another call has none.
func nameOf(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.IndexListExpr:
		return nameOf(e.X)
	default:
		return rule.LastName(e)
	}
}

// argument checks the argument that e looks at.
// A call with fewer arguments does not match: an entry must not judge what is
// not there.
func (m *matcher) argument(e *Entry, c *ast.CallExpr) bool {
	return e.Arg == nil || *e.Arg < len(c.Args) && e.equals(m.p.TypesInfo.Types[c.Args[*e.Arg]].Value)
}

// equals reports whether a constant is the one that e asks for, if any.
// A value that is computed at run time is no match, since it may be any number.
func (e *Entry) equals(v constant.Value) bool {
	if e.Equals == nil {
		return true
	}
	if v == nil {
		return false
	}
	if v.Kind() == constant.Bool { // false is 0
		return constant.BoolVal(v) == (*e.Equals != 0)
	}
	f, ok := constant.Float64Val(constant.ToFloat(v))
	return ok && f == *e.Equals
}

// literal matches a composite literal by its type, and by the fields that it
// must leave out or set.
// Fields that are set after the literal are not seen; unless is for those.
func (m *matcher) literal(lit *ast.CompositeLit) {
	t := m.p.TypesInfo.TypeOf(lit)
	for _, e := range m.active {
		if e.Literal == "" || dataflow.TypeName(t) != e.Literal || !e.covers(dataflow.TypePkg(t)) {
			continue
		}
		if e.Missing != "" && !zeroFields(m.p, lit, e.Missing) || e.Present != "" && zeroField(m.p, lit, e.Present) {
			continue
		}
		m.add(Match{Entry: e, Node: lit})
	}
}

// zeroFields reports whether a literal leaves out each of some fields, "A|B", or
// sets it to zero.
func zeroFields(p *rule.Pass, lit *ast.CompositeLit, fields string) bool {
	for f := range strings.SplitSeq(fields, "|") {
		if !zeroField(p, lit, f) {
			return false
		}
	}
	return true
}

// zeroField reports whether a literal leaves the field out or sets it to zero.
// A value that is not constant counts as set.
func zeroField(p *rule.Pass, lit *ast.CompositeLit, field string) bool {
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			return false // positional: all fields are there
		}
		if id, ok := kv.Key.(*ast.Ident); !ok || id.Name != field {
			continue
		}
		v := p.TypesInfo.Types[kv.Value].Value
		switch {
		case p.TypesInfo.Types[kv.Value].IsNil():
			return true
		case v == nil:
			return false
		case v.Kind() == constant.Bool:
			return !constant.BoolVal(v)
		}
		return (v.Kind() == constant.Int || v.Kind() == constant.Float) && constant.Sign(v) == 0
	}
	return true
}

// assign matches an assignment to a field, as of a client that is configured
// after it was made.
// The field is spelled "Type.Field", as in the entry.
func (m *matcher) assign(l, r ast.Expr) {
	sel, ok := ast.Unparen(l).(*ast.SelectorExpr)
	if !ok {
		return
	}
	t := m.p.TypesInfo.TypeOf(sel.X)
	if t == nil {
		return
	}
	v := m.p.TypesInfo.Types[r].Value
	for _, e := range m.active {
		if e.Field == dataflow.TypeName(t)+"."+sel.Sel.Name && e.covers(dataflow.TypePkg(t)) && e.equals(v) {
			m.add(Match{Entry: e, Node: sel, Name: sel.Sel, Arg: r})
		}
	}
}

// add notes a match, unless something else in the declaration speaks against it.
// The argument is kept for rules that read its value, such as a count of
// attempts.
func (m *matcher) add(found Match) {
	if !m.siblings(found.Entry) {
		return
	}
	if i := found.Entry.Arg; found.Call != nil && i != nil && *i < len(found.Call.Args) {
		found.Arg = found.Call.Args[*i]
	}
	if found.Arg != nil {
		found.Value = m.p.TypesInfo.Types[found.Arg].Value
	}
	m.found = append(m.found, found)
}

// siblings checks what else the declaration, or the package, must or must not use.
// A write with an idempotency key in sight needs no finding.
func (m *matcher) siblings(e *Entry) bool {
	scopes := []ast.Node{m.scope}
	if e.Scope == "package" {
		scopes = nil
		for _, f := range m.p.Files {
			scopes = append(scopes, f)
		}
	}
	if e.unless != nil && m.uses(scopes, e.unless, e) || e.unlessCall != nil && m.uses(scopes, e.unlessCall, nil) {
		return false
	}
	if e.Verdict == Unkeyed && m.keyed() {
		return false
	}
	return e.requires == nil || m.uses(scopes, e.requires, e)
}

// keyed reports whether a string of the declaration names an idempotency key.
// It looks at text alone, and so errs on the side of silence.
func (m *matcher) keyed() bool {
	for n := range ast.Preorder(m.scope) {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && send.IsKeyName(lit.Value) {
			return true
		}
	}
	return false
}

// uses reports whether a scope names something that re matches: of the packages
// of e, or of any package when e is nil.
// It matches the name alone in the second case, since options of other packages
// may configure the library too.
func (m *matcher) uses(scopes []ast.Node, re *regexp.Regexp, e *Entry) bool {
	for _, scope := range scopes {
		for n := range ast.Preorder(scope) {
			id, ok := n.(*ast.Ident)
			if !ok || !re.MatchString(id.Name) {
				continue
			}
			obj := m.p.TypesInfo.Uses[id]
			if e == nil || obj != nil && obj.Pkg() != nil && e.covers(obj.Pkg().Path()) {
				return true
			}
		}
	}
	return false
}

// Pos is where a match is.
// Settings are looked up by it: limits differ between dependencies.
func (m Match) Pos() token.Pos { return m.Node.Pos() }
