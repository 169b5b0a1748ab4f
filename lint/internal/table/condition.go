package table

import (
	"go/ast"
	"go/constant"
	"regexp"
	"strings"
)

// holds reports whether the conditions of a match's entry hold, and notes the value
// of the argument that matters. A call with fewer arguments is no match: an entry
// must not judge what is not there.
func (m *matcher) holds(found *Match) bool {
	e := found.Entry
	if e.Arg != nil && found.Call != nil {
		if *e.Arg >= len(found.Call.Args) {
			return false
		}
		found.Value = m.constant(found.Call.Args[*e.Arg])
	}
	if lit, ok := found.Node.(*ast.CompositeLit); ok && !m.leaves(e, lit) {
		return false
	}
	return e.equals(found.Value) && m.surrounded(e)
}

// leaves reports whether a literal leaves out and sets the fields that e asks for.
// Fields that are set after the literal are not seen; unless is for those.
func (m *matcher) leaves(e *Entry, lit *ast.CompositeLit) bool {
	if e.Missing != "" {
		for f := range strings.SplitSeq(e.Missing, "|") {
			if !m.zero(lit, f) {
				return false
			}
		}
	}
	return e.Present == "" || !m.zero(lit, e.Present)
}

// zero reports whether a literal leaves a field out or sets it to zero. A value
// that is not constant counts as set, and so does each field of a literal without
// keys.
func (m *matcher) zero(lit *ast.CompositeLit, field string) bool {
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		if id, ok := kv.Key.(*ast.Ident); !ok || id.Name != field {
			continue
		}
		if m.pass.TypesInfo.Types[kv.Value].IsNil() {
			return true
		}
		switch v := m.constant(kv.Value); {
		case v == nil:
			return false
		case v.Kind() == constant.Bool:
			return !constant.BoolVal(v)
		default:
			return (v.Kind() == constant.Int || v.Kind() == constant.Float) && constant.Sign(v) == 0
		}
	}
	return true
}

// surrounded reports whether the declaration, or the package, uses what e requires
// and nothing that speaks against it: options are usually set beside the call that
// they belong to.
func (m *matcher) surrounded(e *Entry) bool {
	scopes := []ast.Node{m.scope}
	if e.Scope == "package" {
		scopes = nil
		for _, f := range m.pass.Files {
			scopes = append(scopes, f)
		}
	}
	switch {
	case e.unless != nil && m.uses(scopes, e.unless, e.Covers):
		return false
	case e.unlessCall != nil && m.uses(scopes, e.unlessCall, nil):
		return false
	}
	return e.requires == nil || m.uses(scopes, e.requires, e.Covers)
}

// uses reports whether a scope uses a name that re matches, of the packages that
// are covered. Where that is nil, the name counts whatever it belongs to: functions
// of other packages may configure a library too.
func (m *matcher) uses(scopes []ast.Node, re *regexp.Regexp, covered func(path string) bool) bool {
	for _, scope := range scopes {
		for n := range ast.Preorder(scope) {
			id, ok := n.(*ast.Ident)
			if !ok || !re.MatchString(id.Name) {
				continue
			}
			obj := m.pass.TypesInfo.Uses[id]
			if covered == nil || obj != nil && obj.Pkg() != nil && covered(obj.Pkg().Path()) {
				return true
			}
		}
	}
	return false
}
