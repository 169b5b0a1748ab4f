package delay

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// optional reports whether a wait is made only where the package's users have set
// the function that says how long: if backoff != nil { time.Sleep(backoff(n)) }.
// By default there is none.
func (w *Wait) optional(s *fact.Scope) bool {
	c, ok := w.D.(*ssa.Call)
	if !ok || c.Common().IsInvoke() {
		return false
	}
	field := dataflow.ReadField(c.Common().Value)
	if field == nil || !unset(s.Known, field, 0) {
		return false
	}
	for b := c.Block().Idom(); b != nil; b = b.Idom() {
		br := dataflow.IfOf(b)
		if br == nil {
			continue
		}
		cmp, ok := br.Cond.(*ssa.BinOp)
		if !ok || cmp.Op != token.NEQ || !dataflow.IsNil(cmp.Y) || dataflow.ReadField(cmp.X) != field {
			continue
		}
		if set := b.Succs[0]; len(set.Preds) == 1 && set.Dominates(c.Block()) {
			return true
		}
	}
	return false
}

// unset reports whether the package sets a field to nothing but what its users say
// in another one, or hand to an option.
func unset(known *fact.Table, field *types.Var, depth int) bool {
	for _, st := range known.FieldStores(field) {
		v := dataflow.Strip(st.Val)
		if _, given := v.(*ssa.Parameter); given || dataflow.IsNil(v) {
			continue
		}
		from := dataflow.ReadField(v)
		if from == nil || from == field || depth > 1 || !unset(known, from, depth+1) {
			return false
		}
	}
	return true
}
