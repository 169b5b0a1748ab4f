package status

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// use is what the package does with a variable of its own.
type use struct {
	first ssa.Value // what its declaration gives it
	again bool      // it is set later
	grown bool      // what it holds gets other elements
}

// use returns what is done with a variable. The package is read once.
func (j *Judge) use(g *ssa.Global) *use {
	j.readUses()
	if u := j.uses[g]; u != nil {
		return u
	}
	return &use{}
}

// isGrown reports whether the package puts elements in a map or a list that a field
// holds, after it was made.
func (j *Judge) isGrown(f *types.Var) bool {
	j.readUses()
	return j.grown[f]
}

// readUses reads what the package does with its variables, and with the maps and
// lists that its fields hold.
func (j *Judge) readUses() {
	if j.uses != nil {
		return
	}
	j.uses, j.grown = map[*ssa.Global]*use{}, map[*types.Var]bool{}
	of := func(g *ssa.Global) *use {
		if j.uses[g] == nil {
			j.uses[g] = &use{}
		}
		return j.uses[g]
	}
	grow := func(v ssa.Value) {
		load, ok := v.(*ssa.UnOp)
		if !ok || load.Op != token.MUL {
			return
		}
		if g, ok := load.X.(*ssa.Global); ok {
			of(g).grown = true
		} else if f := dataflow.FieldVar(load.X); f != nil {
			j.grown[f] = true
		}
	}
	fns := slices.Clip(j.known.Funcs())
	var init *ssa.Function
	if len(fns) > 0 && fns[0].Pkg != nil {
		if init = fns[0].Pkg.Func("init"); init != nil {
			fns = append(fns, init)
		}
	}
	for _, fn := range fns {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			switch in := in.(type) {
			case *ssa.Store:
				if ia, ok := in.Addr.(*ssa.IndexAddr); ok {
					grow(ia.X)
				}
				if g, ok := in.Addr.(*ssa.Global); ok && fn == init {
					of(g).first = in.Val
				} else if ok {
					of(g).again = true
				}
			case *ssa.MapUpdate:
				grow(in.Map)
			case *ssa.Call: // delete, maps.Copy
				b, isBuiltin := in.Common().Value.(*ssa.Builtin)
				if (isBuiltin && (b.Name() == "delete" || b.Name() == "clear") || dataflow.CalleePkg(in.Common()) == "maps") && len(in.Common().Args) > 0 {
					grow(in.Common().Args[0])
				}
			}
		}
	}
}

// initial returns what the package's declaration stores in g, or nil. It is less
// sure of one that is set elsewhere too: a table of statuses is rarely changed.
func (e *eval) initial(g *ssa.Global) ssa.Value {
	u := e.j.use(g)
	e.guessed = e.guessed || u.first != nil && (u.again || token.IsExported(g.Name()))
	return u.first
}
