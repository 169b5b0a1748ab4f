package fact

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// Table computes and remembers what is known of a package's functions. It is
// filled on demand: a question about one function leads to those that it calls.
// It is not safe for concurrent use; an analysis of a package has its own.
type Table struct {
	pass      *analysis.Pass
	pkg       *ssa.Package
	memo      map[*ssa.Function]*Summary
	scopes    map[*ssa.Function]*Scope
	summarize func(*Scope, *Summary)
	funcs     []*ssa.Function
	index     *index
	// implementers are what Implementers has found.
	implementers map[implemented][]*Summary
}

// NewTable returns the table of a package, which may be nil when its code is not
// judged. summarize fills in what is known of one of its functions. It comes
// from above, since it asks the packages that judge waits, requests and
// statuses, and those ask the table.
func NewTable(pass *analysis.Pass, pkg *ssa.Package, summarize func(*Scope, *Summary)) *Table {
	return &Table{pass: pass, pkg: pkg, memo: map[*ssa.Function]*Summary{}, scopes: map[*ssa.Function]*Scope{}, summarize: summarize, implementers: map[implemented][]*Summary{}}
}

// Scope is one function, with what is known of the others of its package.
type Scope struct {
	*dataflow.Func
	Known *Table
}

// Of returns the summary of the function that c calls, or nil when nothing is
// known of it.
func (s *Table) Of(c *ssa.CallCommon) *Summary {
	if fn := s.Body(c); fn != nil {
		if dataflow.BoundMethod(c.StaticCallee()) == fn {
			return s.Local(fn).bound()
		}
		return s.Local(fn)
	}
	obj := dataflow.Callee(c)
	if obj == nil || obj.Pkg() == nil || obj.Pkg() == s.pass.Pkg {
		return nil
	}
	var fact Summary
	if s.pass.ImportObjectFact(obj, &fact) {
		return &fact
	}
	return nil
}

// Own reports whether fn was written in the package, as a literal or as the
// origin of an instance too. Only such functions have bodies that can be read.
func (s *Table) Own(fn *ssa.Function) bool {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn.Pkg == s.pkg || fn.Origin() != nil && fn.Origin().Pkg == s.pkg
}

// Body returns the function of the package that c calls, when its body can be
// read, and nil otherwise.
func (s *Table) Body(c *ssa.CallCommon) *ssa.Function {
	if fn := dataflow.Static(c); fn != nil && len(fn.Blocks) > 0 && s.Own(fn) {
		return fn
	}
	return nil
}

// Foreign reports whether a package belongs to another module than the one that
// is judged. Without modules, every other package does.
func (s *Table) Foreign(path string) bool {
	if path == "" || path == s.pass.Pkg.Path() {
		return false
	}
	return s.pass.Module == nil || !dataflow.Under(path, s.pass.Module.Path)
}

// Scope returns the scope of fn, made once.
func (s *Table) Scope(fn *ssa.Function) *Scope {
	f := s.scopes[fn]
	if f == nil {
		f = &Scope{Func: dataflow.NewFunc(fn), Known: s}
		s.scopes[fn] = f
	}
	return f
}

// Local returns the summary of a function of this package, which is computed
// once. A recursive call sees the empty summary: what it would add is found at
// its outermost call.
func (s *Table) Local(fn *ssa.Function) *Summary {
	if sum, ok := s.memo[fn]; ok {
		return sum
	}
	sum := &Summary{}
	s.memo[fn] = sum
	s.summarize(s.Scope(fn), sum)
	return sum
}
