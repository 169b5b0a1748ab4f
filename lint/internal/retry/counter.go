package retry

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// counts reports whether x counts the attempts, and how many y allows, or 0.
func counts(r *Retry, x, y ssa.Value, op token.Token) (limit int64, ok bool) {
	if !isInt(x.Type()) {
		return 0, false
	}
	start, step, found := counter(r, x)
	if !found {
		return 0, false
	}
	k, isConst := y.(*ssa.Const)
	if !isConst || k.Value == nil || k.Value.Kind() != constant.Int || step == 0 {
		return 0, true
	}
	n := k.Int64() - start
	if start > 1<<30 {
		return 0, true
	}
	if step < 0 {
		n = -n
	}
	switch op {
	case token.LEQ, token.GTR:
		if step > 0 {
			n++
		}
	case token.GEQ:
		if step < 0 {
			n++
		}
	}
	return n, n > 0
}

// counter recognizes a number that each turn raises or lowers by one: a phi of the
// loop's head, one more than it, a variable, a parameter of a recursion.
func counter(r *Retry, v ssa.Value) (start, step int64, ok bool) {
	if c, isConv := v.(*ssa.Convert); isConv {
		return counter(r, c.X)
	}
	if b, isBin := v.(*ssa.BinOp); isBin && (b.Op == token.ADD || b.Op == token.SUB) {
		if k, isConst := b.Y.(*ssa.Const); isConst && k.Value != nil && k.Value.Kind() == constant.Int {
			start, step, ok = counter(r, b.X)
			if p, isPhi := b.X.(*ssa.Phi); ok && isPhi && feeds(b, p) {
				return start, step, ok // it is raised behind the attempt that it counts
			}
			if b.Op == token.ADD {
				return start + k.Int64(), step, ok
			}
			return start - k.Int64(), step, ok
		}
		return 0, 0, false
	}
	switch v := v.(type) {
	case *ssa.Phi:
		if r.Loop == nil || v.Block() != r.Loop.Header {
			return 0, 0, false
		}
		known := false
		for i, e := range v.Edges {
			if r.Loop.Blocks[v.Block().Preds[i]] {
				b, isBin := through(e, v).(*ssa.BinOp)
				if !isBin || b.Op != token.ADD && b.Op != token.SUB {
					continue
				}
				k, isConst := b.Y.(*ssa.Const)
				if !isConst || !reaches(b.X, v) {
					continue
				}
				if step = k.Int64(); b.Op == token.SUB {
					step = -step
				}
				known = true
			} else if k, isConst := e.(*ssa.Const); isConst && k.Value != nil {
				start = k.Int64()
			} else {
				start = 1 << 40
			}
		}
		return start, step, known
	case *ssa.Parameter:
		if r.Loop != nil {
			return 0, 0, false
		}
		for c := range Calls(r.Fn) {
			if eval.Static(c.Common()) != r.Fn {
				continue
			}
			for i, p := range r.Fn.Params {
				if p == v && i < len(c.Common().Args) {
					if b, isBin := c.Common().Args[i].(*ssa.BinOp); isBin && (b.Op == token.ADD || b.Op == token.SUB) {
						return 1 << 40, 1, true
					}
				}
			}
		}
	case *ssa.UnOp: // a variable in a cell or a field
		if v.Op != token.MUL {
			return 0, 0, false
		}
		for _, blk := range r.Fn.Blocks {
			if r.Loop != nil && !r.Loop.Blocks[blk] {
				continue
			}
			for _, in := range blk.Instrs {
				st, isStore := in.(*ssa.Store)
				if !isStore || !sameCell(st.Addr, v.X) {
					continue
				}
				if b, isBin := st.Val.(*ssa.BinOp); isBin && (b.Op == token.ADD || b.Op == token.SUB) {
					return 1 << 40, 1, true
				}
			}
		}
	}
	return 0, 0, false
}

// through is the value of a phi on its way back to another one: an inner join of the
// same counter.
func through(v ssa.Value, head *ssa.Phi) ssa.Value {
	if p, ok := v.(*ssa.Phi); ok && p != head {
		for _, e := range p.Edges {
			if _, isBin := e.(*ssa.BinOp); isBin {
				return e
			}
		}
	}
	return v
}

// feeds reports whether a value is what a phi takes over from the turn before.
func feeds(v ssa.Value, p *ssa.Phi) bool {
	for _, e := range p.Edges {
		if through(e, p) == v {
			return true
		}
	}
	return false
}

func reaches(v ssa.Value, head *ssa.Phi) bool {
	if v == ssa.Value(head) {
		return true
	}
	if p, ok := v.(*ssa.Phi); ok {
		if slices.Contains(p.Edges, ssa.Value(head)) {
			return true
		}
	}
	return false
}

// sameCell reports whether two addresses are of the same variable or field. A variable
// of a loop that a literal captures has a cell for each turn.
func sameCell(a, b ssa.Value) bool {
	if p, ok := b.(*ssa.Phi); a == b || ok && slices.Contains(p.Edges, a) {
		return true
	}
	x, ok := a.(*ssa.FieldAddr)
	y, both := b.(*ssa.FieldAddr)
	return ok && both && x.Field == y.Field && types.Identical(x.X.Type(), y.X.Type())
}

func flip(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.GTR:
		return token.LSS
	case token.LEQ:
		return token.GEQ
	case token.GEQ:
		return token.LEQ
	}
	return op
}
