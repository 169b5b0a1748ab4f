package table

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/syntax"
)

// Fix is a change that keeps the number of attempts and the scale of the waits.
// Exactly one of them, Changes aside, says what is done; it is offered only where the
// library, in the version that is used, has what it needs.
// Nothing of it may change what is retried.
type Fix struct {
	// Name replaces the name of the call or the value by another of the same
	// type.
	Name string `yaml:"name,omitempty"`
	// Wrap puts the call into one of the function of that name.
	Wrap string `yaml:"wrap,omitempty"`
	// Value replaces the argument, or the value that is assigned, by a constant
	// of the package.
	Value string `yaml:"value,omitempty"`
	// Field adds a field to the literal: "Jitter: true".
	Field string `yaml:"field,omitempty"`
	// Instead is an expression that replaces the call, with $pkg for the name of
	// the package and $0, $1 for the arguments: "$pkg.Jittered($0, 0.5)".
	Instead string `yaml:"instead,omitempty"`
	// Chain is a call of a method on what the call returns: "WithJitter(0.25)".
	Chain string `yaml:"chain,omitempty"`
	// Option is a call that is added to the options beside the call, or beside the
	// option that it is an argument of: "WithJitter()".
	Option string `yaml:"option,omitempty"`
	// Changes says what is different then: "each wait is a random part of it".
	Changes string `yaml:"changes"`
}

// check reports what is wrong with the fix of an entry.
// It runs when the table is read: a fix that is at fault would otherwise fail
// only at the first match, in a user's code.
func (f *Fix) check() error {
	var errs []error
	said := 0
	for _, s := range []string{f.Name, f.Wrap, f.Value} {
		if s != "" {
			said++
			if !token.IsIdentifier(s) {
				errs = append(errs, fmt.Errorf("fix: %q is no name", s))
			}
		}
	}
	if f.Field != "" {
		said++
		if name, value, ok := strings.Cut(f.Field, ": "); !ok || !token.IsIdentifier(name) || value == "" {
			errs = append(errs, fmt.Errorf("fix: field is %q: want a name and a value such as Jitter: true", f.Field))
		}
	}
	for _, s := range []string{f.Instead, f.Chain, f.Option} {
		if s != "" {
			said++
			if _, err := parser.ParseExpr(strings.ReplaceAll(s, "$", "_")); err != nil {
				errs = append(errs, fmt.Errorf("fix: %q is no expression", s))
			}
		}
	}
	if said != 1 {
		errs = append(errs, errors.New("fix: want exactly one of name, wrap, value, field, instead, chain, option"))
	}
	if strings.TrimSpace(f.Changes) == "" {
		errs = append(errs, errors.New("fix: changes is missing: what is different then?"))
	}
	return errors.Join(errs...)
}

// fixes returns what the entry suggests, where it can be done.
// No fix is better than one that does not compile, so that the expression around
// each is checked with the types of the version in use.
func (m Match) fixes(p *rule.Pass) []analysis.SuggestedFix {
	f := m.Entry.Fix
	if f == nil {
		return nil
	}
	var edits []analysis.TextEdit
	switch {
	case f.Name != "":
		edits = m.rename(p, f.Name)
	case f.Wrap != "":
		edits = m.wrap(p, f.Wrap)
	case f.Value != "":
		edits = m.replace(p, f.Value)
	case f.Field != "":
		edits = m.insert(p, f.Field)
	case f.Instead != "":
		edits = m.instead(p, f.Instead)
	case f.Chain != "":
		edits = m.chain(f.Chain)
	case f.Option != "":
		edits = m.option(p, f.Option)
	}
	if edits == nil || !m.compiles(p, edits) {
		return nil
	}
	return []analysis.SuggestedFix{{Message: f.String(), TextEdits: edits}}
}

// rename needs another function of the same package with the same type, so that
// the call goes on to mean what it did.
func (m Match) rename(p *rule.Pass, name string) []analysis.TextEdit {
	if m.Name == nil {
		return nil
	}
	old := p.TypesInfo.Uses[m.Name]
	if old == nil || old.Pkg() == nil {
		return nil
	}
	other := old.Pkg().Scope().Lookup(name)
	if other == nil || !types.Identical(old.Type(), other.Type()) {
		return nil
	}
	return []analysis.TextEdit{{Pos: m.Name.Pos(), End: m.Name.End(), NewText: []byte(name)}}
}

// wrap puts the name of the package in front, so that it must be named at the
// call: a method or a dot import has none.
func (m Match) wrap(p *rule.Pass, name string) []analysis.TextEdit {
	if m.Call == nil {
		return nil
	}
	sel, ok := ast.Unparen(m.Call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	qualifier, ok := sel.X.(*ast.Ident)
	if !ok {
		return nil
	}
	if _, ok := p.TypesInfo.Uses[qualifier].(*types.PkgName); !ok {
		return nil
	}
	return []analysis.TextEdit{
		{Pos: m.Call.Pos(), End: m.Call.Pos(), NewText: []byte(qualifier.Name + "." + name + "(")},
		{Pos: m.Call.End(), End: m.Call.End(), NewText: []byte(")")},
	}
}

// replace needs a constant of the library, and a name for the library in the
// file.
func (m Match) replace(p *rule.Pass, name string) []analysis.TextEdit {
	if m.Arg == nil {
		return nil
	}
	for _, imp := range p.Pkg.Imports() {
		if !m.Entry.covers(imp.Path()) {
			continue
		}
		_, ok := imp.Scope().Lookup(name).(*types.Const)
		qualifier := m.qualifier(p, imp)
		if !ok || qualifier == "" {
			continue
		}
		return []analysis.TextEdit{{Pos: m.Arg.Pos(), End: m.Arg.End(), NewText: []byte(qualifier + "." + name)}}
	}
	return nil
}

// qualifier is the name by which the match's file knows a package, or "": a fix
// that added an import could collide with a name of the file.
func (m Match) qualifier(p *rule.Pass, pkg *types.Package) string {
	f := p.FileAt(m.Pos())
	if f == nil || pkg == nil {
		return ""
	}
	return syntax.Imported(p.TypesInfo, f, pkg.Path())
}

// insert adds a field in front of the others, on a line of its own where they
// are.
// A literal without keys, or one that sets the field already, gets no fix. gofmt
// aligns the rest when the fix is applied.
func (m Match) insert(p *rule.Pass, field string) []analysis.TextEdit {
	lit, ok := m.Node.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(field, ":")
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			return nil
		}
		if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
			return nil
		}
	}
	at, text := lit.Lbrace+1, field
	if len(lit.Elts) > 0 {
		at, text = lit.Elts[0].Pos(), field+", "
		if p.Fset.Position(at).Line > p.Fset.Position(lit.Lbrace).Line {
			text = field + ",\n" + strings.Repeat("\t", p.Fset.Position(at).Column-1)
		}
	}
	return []analysis.TextEdit{{Pos: at, End: at, NewText: []byte(text)}}
}

// String is what a fix is called where it is offered.
// Exactly one of them is set, so that joining them yields the one.
func (f *Fix) String() string {
	return "use " + f.Name + f.Wrap + f.Value + f.Field + strings.ReplaceAll(f.Instead, "$pkg.", "") + f.Chain + f.Option + ": " + f.Changes
}

// BuiltinFixes returns the fixes of the built-in entries.
// A test applies each of them to real code.
func BuiltinFixes() (fixes []*Fix) {
	for _, e := range builtins {
		if e.Fix != nil {
			fixes = append(fixes, e.Fix)
		}
	}
	return fixes
}
