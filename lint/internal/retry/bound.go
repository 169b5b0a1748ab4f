package retry

import (
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Bound says what ends a retry beside a success.
type Bound struct {
	Counter  bool  // it counts its attempts
	Known    bool  // up to a constant
	Limit    int64 // attempts, where Known
	Deadline bool  // a clock
	Context  bool  // the context of its caller
	Stop     bool  // a channel or a flag that others set
}

// bound reads the exits of a loop, or the parameters of a recursion.
func (p *Package) bound(r *Retry) (b Bound) {
	for _, blk := range r.Fn.Blocks {
		if r.Loop != nil && !r.Loop.Blocks[blk] {
			continue
		}
		for _, in := range blk.Instrs {
			switch in := in.(type) {
			case *ssa.If:
				b.exit(r, in.Cond, 0)
			case *ssa.Select:
				for _, st := range in.States {
					if st.Dir == types.RecvOnly && !isClock(st.Chan) {
						if isDone(st.Chan) {
							b.Context = true
						} else {
							b.Stop = true
						}
					}
				}
			case *ssa.Call:
				for _, a := range in.Common().Args {
					b.Context = b.Context || isContext(a.Type()) && !background(a)
				}
			}
		}
	}
	b.Deadline = b.Deadline || b.Context && timed(r.Fn, r.Loop)
	return b
}

// exit reads a condition. Those that leave the loop limit it; in a recursion any
// does.
func (b *Bound) exit(r *Retry, cond ssa.Value, depth int) {
	if depth > 4 {
		return
	}
	switch v := cond.(type) {
	case *ssa.UnOp:
		if v.Op == token.NOT {
			b.exit(r, v.X, depth+1)
		}
	case *ssa.Phi:
		for _, e := range v.Edges {
			b.exit(r, e, depth+1)
		}
	case *ssa.Call:
		if n := eval.CalleeName(v.Common()); eval.CalleePkg(v.Common()) == "time" && (n == "After" || n == "Before") {
			b.Deadline = true
		}
	case *ssa.BinOp:
		if timely(v.X) || timely(v.Y) {
			b.Deadline = true
			return
		}
		if limit, at := counts(r, v.X, v.Y, v.Op); at {
			b.Counter = true
			if limit > 0 && (!b.Known || limit < b.Limit) {
				b.Known, b.Limit = true, limit
			}
		} else if limit, at := counts(r, v.Y, v.X, flip(v.Op)); at {
			b.Counter = true
			if limit > 0 && (!b.Known || limit < b.Limit) {
				b.Known, b.Limit = true, limit
			}
		}
	}
}

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
		for _, e := range p.Edges {
			if e == ssa.Value(head) {
				return true
			}
		}
	}
	return false
}

// sameCell reports whether two addresses are of the same variable or field.
func sameCell(a, b ssa.Value) bool {
	if a == b {
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

func isInt(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0 && !eval.IsDuration(t)
}

// timely reports whether a value is how much time has passed, or is left.
func timely(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	if !ok {
		if b, ok := v.(*ssa.BinOp); ok {
			return timely(b.X) || timely(b.Y)
		}
		return false
	}
	switch n := eval.CalleeName(c.Common()); eval.CalleePkg(c.Common()) {
	case "time":
		return n == "Since" || n == "Until" || n == "Sub"
	}
	return false
}

func isContext(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Context" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context"
}

// background reports whether a context never ends.
func background(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && (eval.CalleeName(c.Common()) == "Background" || eval.CalleeName(c.Common()) == "TODO")
}

// timed reports whether a function sets a time for what it does, outside of the loop.
func timed(fn *ssa.Function, l *eval.Loop) bool {
	for c := range Calls(fn) {
		switch eval.CalleeName(c.Common()) {
		case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
			if eval.CalleePkg(c.Common()) == "context" && (l == nil || !l.Contains(c)) {
				return true
			}
		}
	}
	return false
}

func isDone(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && eval.CalleeName(c.Common()) == "Done"
}

// isClock reports whether a channel is one of a clock.
func isClock(v ssa.Value) bool {
	ch, ok := v.Type().Underlying().(*types.Chan)
	if !ok {
		return false
	}
	n, ok := types.Unalias(ch.Elem()).(*types.Named)
	return ok && n.Obj().Name() == "Time"
}
