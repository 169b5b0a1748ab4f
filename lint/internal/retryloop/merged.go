package retryloop

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// mergedTest recognizes a bool that was made of a look at an error and of more:
// again := err != nil && temporary(err). SSA merges such a bool of a constant,
// for the side on which there is no error, and of what the rest says. t takes the
// failure to be what the branch is true for.
func (f *finder) mergedTest(v *ssa.Phi, t *Test, l *dataflow.Loop) *Test {
	if !dataflow.IsBool(v.Type()) {
		return nil
	}
	err, fails, ok := f.decidedBy(v, l, map[*ssa.Phi]bool{})
	if !ok {
		return nil
	}
	if !fails {
		t.Fail = 1 - t.Fail
	}
	t.Ops = f.opsOf(err, l)
	return t
}

// decidedBy returns the error without which a merged bool has one value for
// certain, and whether the other is true. One that is merged again, as by a loop
// over further conditions, is followed; seen ends that.
func (f *finder) decidedBy(v *ssa.Phi, l *dataflow.Loop, seen map[*ssa.Phi]bool) (err ssa.Value, fails, ok bool) {
	if seen[v] || !l.Contains(v) || len(seen) > 10 {
		return nil, false, false
	}
	seen[v] = true
	for i, e := range v.Edges {
		switch e := e.(type) {
		case *ssa.Const:
			value, _ := dataflow.ConstBool(e)
			pred := v.Block().Preds[i]
			br := dataflow.IfOf(pred)
			if br == nil {
				continue
			}
			err, failed := errorCheck(br.Cond)
			if err == nil || !l.Contains(br) || pred.Succs[0] == pred.Succs[1] {
				continue
			}
			// A success must decide alone: err == nil && ready(v) is no failure of a call
			// where it is false.
			if pred.Succs[failed] != v.Block() {
				return err, !value, true
			}
		case *ssa.UnOp:
			if inner, isPhi := e.X.(*ssa.Phi); isPhi && e.Op == token.NOT {
				if err, fails, ok := f.decidedBy(inner, l, seen); ok {
					return err, !fails, true
				}
			}
		case *ssa.Phi:
			if err, fails, ok := f.decidedBy(e, l, seen); ok {
				return err, fails, true
			}
		}
	}
	return nil, false, false
}
