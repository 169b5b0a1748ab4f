package retry

import (
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/eval"
)

// itemsOf are the values that a loop takes from a list, a map or a channel, one at
// each turn.
func itemsOf(fn *ssa.Function, l *eval.Loop) (items []ssa.Value) {
	if !ablate.On("items") {
		return nil
	}
	for b := range l.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Next:
				items = append(items, in)
			case *ssa.IndexAddr:
				if turnIndex(in.Index, l) {
					items = append(items, in)
				}
			case *ssa.Index:
				if turnIndex(in.Index, l) {
					items = append(items, in)
				}
			}
		}
	}
	return items
}

// turnIndex reports whether a value is the number of the turn of a loop over a list:
// a phi of its head, or one more, that is compared with a length.
func turnIndex(v ssa.Value, l *eval.Loop) bool {
	if b, ok := v.(*ssa.BinOp); ok {
		if p, isPhi := b.X.(*ssa.Phi); isPhi && p.Block() == l.Header {
			return comparedWithLen(b) || comparedWithLen(p)
		}
	}
	if u, ok := v.(*ssa.UnOp); ok && u.Op == token.MUL { // of a variable that a literal captures
		return slices.ContainsFunc(*u.X.Referrers(), func(in ssa.Instruction) bool {
			st, isStore := in.(*ssa.Store)
			if !isStore || !l.Contains(st) {
				return false
			}
			b, isBin := st.Val.(*ssa.BinOp)
			return isBin && b.Op == token.ADD
		})
	}
	p, ok := v.(*ssa.Phi)
	return ok && p.Block() == l.Header && comparedWithLen(p)
}

func comparedWithLen(v ssa.Value) bool {
	for _, ref := range *v.Referrers() {
		if b, ok := ref.(*ssa.BinOp); ok {
			y := b.Y
			if less, ok := y.(*ssa.BinOp); ok { // len(list)-1
				y = less.X
			}
			if c, ok := y.(*ssa.Call); ok {
				if bi, ok := c.Common().Value.(*ssa.Builtin); ok && bi.Name() == "len" {
					return true
				}
			}
		}
	}
	return false
}

// usesAny reports whether a call depends on one of some values, through what is
// computed of them and stored.
func usesAny(c *ssa.Call, from []ssa.Value) bool {
	seen := map[ssa.Value]bool{}
	work := slices.Clone(from)
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[v] || v.Referrers() == nil {
			continue
		}
		seen[v] = true
		for _, ref := range *v.Referrers() {
			switch ref := ref.(type) {
			case *ssa.Call:
				if ref == c {
					return true
				}
				work = append(work, ref)
			case *ssa.Store:
				if ref.Val == v {
					work = append(work, around(ref.Addr)...)
				}
			case *ssa.Phi: // the item of another turn is another item
				if len(ref.Edges) < 4 {
					work = append(work, ref)
				}
			case ssa.Value:
				work = append(work, ref)
			}
		}
	}
	return false
}

// around are an address and the values that what is stored there is a part of.
func around(addr ssa.Value) (all []ssa.Value) {
	for {
		all = append(all, addr)
		switch a := addr.(type) {
		case *ssa.FieldAddr:
			addr = a.X
		case *ssa.IndexAddr:
			addr = a.X
		case *ssa.UnOp:
			field, ok := a.X.(*ssa.FieldAddr)
			if !ok {
				return all
			}
			addr = field.X
		default:
			return all
		}
	}
}

// obtained are the values that each turn of a loop takes anew: from a channel, or by a
// call that says so.
func obtained(fn *ssa.Function, l *eval.Loop) (all []ssa.Value) {
	for in := range InstrsOf[ssa.Instruction](fn) {
		if !l.Contains(in) {
			continue
		}
		switch in := in.(type) {
		case *ssa.UnOp:
			if in.Op == token.ARROW {
				all = append(all, in)
			}
		case *ssa.Call:
			if obtainWord.MatchString(eval.CalleeName(in.Common())) && !mayFail(in) {
				all = append(all, in)
			}
		}
	}
	return all
}

// obtainWord marks calls that yield another item or another server at each turn.
var obtainWord = regexp.MustCompile(`(?i)^(pick|next|acquire|select|choose|obtain|take|borrow|pop|dequeue|shift)|(next|any|random)(conn|client|node|host|peer|server|address|endpoint)?$`)

// counted reports whether the head of a loop counts its turns.
func counted(fn *ssa.Function, l *eval.Loop) bool {
	br, ok := l.Header.Instrs[len(l.Header.Instrs)-1].(*ssa.If)
	if !ok {
		return false
	}
	var b Bound
	b.exit(&Retry{Fn: fn, Loop: l}, br.Cond, 0)
	return b.Counter && !slices.ContainsFunc(l.Header.Instrs, func(in ssa.Instruction) bool {
		p, ok := in.(*ssa.Phi) // which some turns leave as it is
		return ok && isInt(p.Type()) && slices.Contains(p.Edges, ssa.Value(p))
	})
}

// itemLoop reports whether each turn of a loop has an item of its own: of a list, a map
// or a channel.
func itemLoop(l *eval.Loop) bool {
	for _, in := range l.Header.Instrs {
		switch in := in.(type) {
		case *ssa.Next:
			return true
		case *ssa.UnOp:
			if in.Op == token.ARROW && in.CommaOk {
				return true
			}
		case *ssa.If:
			if b, ok := in.Cond.(*ssa.BinOp); ok {
				return turnIndex(b.X, l)
			}
		}
	}
	return false
}

// accepts reports whether a loop takes the next connection of a listener.
func accepts(fn *ssa.Function, l *eval.Loop) bool {
	for c := range Calls(fn) {
		if l.Contains(c) && strings.HasPrefix(eval.CalleeName(c.Common()), "Accept") {
			return true
		}
	}
	return false
}
