package status

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// cellValue follows the read of a variable that could not be lifted (a result
// of a function that defers) to the last store before it, through blocks with a
// single predecessor. Where paths meet, the read is returned as it is.
// Six blocks are enough for the code that a defer leaves between them.
func cellValue(v ssa.Value) ssa.Value {
	u, ok := v.(*ssa.UnOp)
	if !ok || u.Op != token.MUL {
		return v
	}
	if _, ok := u.X.(*ssa.Alloc); !ok {
		return v
	}
	b := u.Block()
	at := len(b.Instrs)
	for i, in := range b.Instrs {
		if in == ssa.Instruction(u) {
			at = i
		}
	}
	for range 6 {
		for i := at - 1; i >= 0; i-- {
			if s, ok := b.Instrs[i].(*ssa.Store); ok && s.Addr == u.X {
				return s.Val
			}
		}
		if len(b.Preds) != 1 {
			return v
		}
		b = b.Preds[0]
		at = len(b.Instrs)
	}
	return v
}
