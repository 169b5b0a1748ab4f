package fact

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Limits of the search for what implements an interface.
const (
	maxImports      = 60
	maxImplementers = 8
)

// Implementers returns what is known of the methods that a call through an interface
// may reach in the packages of the module that this one imports: a client behind
// an interface, whose package is imported where it is made. There may be others, so
// that it is no more than a guess.
func (s *Table) Implementers(c *ssa.CallCommon) []*Summary {
	if !c.IsInvoke() || s.pkg == nil {
		return nil
	}
	iface, ok := c.Value.Type().Underlying().(*types.Interface)
	if !ok || iface.Empty() {
		return nil
	}
	// An interface that embeds another one has the same methods, and fewer kinds.
	call := implemented{iface, c.Method}
	found, ok := s.implementers[call]
	if ok {
		return found
	}
	for i, p := range s.pass.Pkg.Imports() {
		if i < maxImports && !s.Foreign(p.Path()) && len(found) < maxImplementers {
			found = append(found, s.implementersIn(p, iface, c.Method)...)
		}
	}
	s.implementers[call] = found
	return found
}

// implemented is a method of an interface, as it is called.
type implemented struct {
	iface  *types.Interface
	method *types.Func
}

// implementersIn returns those of one package.
func (s *Table) implementersIn(p *types.Package, iface *types.Interface, method *types.Func) (found []*Summary) {
	for _, name := range p.Scope().Names() {
		t, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || t.IsAlias() || types.IsInterface(t.Type()) {
			continue
		}
		ptr := types.NewPointer(t.Type())
		if n, ok := t.Type().(*types.Named); !ok || n.TypeParams() != nil || !types.Implements(ptr, iface) {
			continue
		}
		obj, _, _ := types.LookupFieldOrMethod(ptr, true, p, method.Name())
		var sum Summary
		if m, ok := obj.(*types.Func); ok && s.pass.ImportObjectFact(m.Origin(), &sum) {
			found = append(found, &sum)
		}
	}
	return found
}
