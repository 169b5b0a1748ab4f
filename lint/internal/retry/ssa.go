package retry

import (
	"go/constant"
	"go/types"
	"iter"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Instrs yields the instructions of a kind in a retry: those of its loop, or of its
// function.
func Instrs[T ssa.Instruction](r *Retry) iter.Seq[T] {
	return func(yield func(T) bool) {
		for in := range InstrsOf[T](r.Fn) {
			if r.Contains(in) && !yield(in) {
				return
			}
		}
	}
}

// InstrsOf yields the instructions of a kind in a function.
func InstrsOf[T ssa.Instruction](fn *ssa.Function) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, b := range fn.Blocks {
			for _, in := range b.Instrs {
				if t, ok := in.(T); ok && !yield(t) {
					return
				}
			}
		}
	}
}

// Contains reports whether an instruction belongs to the retry.
func (r *Retry) Contains(in ssa.Instruction) bool {
	return in.Parent() == r.Fn && (r.Loop == nil || r.Loop.Contains(in))
}

// Text is the text of a constant, or "".
func Text(v ssa.Value) string {
	if m, ok := v.(*ssa.MakeInterface); ok {
		v = m.X
	}
	if c, ok := v.(*ssa.Const); ok && c.Value != nil && c.Value.Kind() == constant.String {
		return constant.StringVal(c.Value)
	}
	return ""
}

// Number is the number of a constant; ok is false for any other value.
func Number(v ssa.Value) (n int64, ok bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil || c.Value.Kind() != constant.Int {
		return 0, false
	}
	return c.Int64(), true
}

// FieldName is the name of the field whose address v is, or "".
func FieldName(v ssa.Value) string {
	if fa, ok := v.(*ssa.FieldAddr); ok {
		return eval.ValueName(fa)
	}
	return ""
}

// IsNamed reports whether t, or what it points to, is the named type.
func IsNamed(t types.Type, pkg, name string) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	return eval.IsNamed(t, pkg, name)
}

// CallsTo reports whether a call is one of the named functions of a package.
func CallsTo(c *ssa.CallCommon, pkg string, names ...string) bool {
	if eval.CalleePkg(c) != pkg {
		return false
	}
	name := eval.CalleeName(c)
	return slices.Contains(names, name)
}

// Mentions reports whether a text, a field or a callee in the retry, or up to two calls
// below it, is one that is looked for.
func (r *Retry) Mentions(is func(string) bool) bool {
	for in := range Instrs[ssa.Instruction](r) {
		if mentions(in, is, 2) {
			return true
		}
	}
	return false
}

// MentionedIn is Mentions for a function.
func MentionedIn(fn *ssa.Function, is func(string) bool, depth int) bool {
	for in := range InstrsOf[ssa.Instruction](fn) {
		if mentions(in, is, depth) {
			return true
		}
	}
	return false
}

func mentions(in ssa.Instruction, is func(string) bool, depth int) bool {
	for _, op := range in.Operands(nil) {
		if t := Text(*op); t != "" && len(t) < 200 && is(t) {
			return true
		}
		if g, ok := (*op).(*ssa.Global); ok && is(g.Name()) {
			return true
		}
	}
	if v, ok := in.(ssa.Value); ok {
		if n := FieldName(v); n != "" && !isBoolPtr(v.Type()) && is(n) {
			return true
		}
	}
	if c, ok := in.(ssa.CallInstruction); ok {
		// A question, such as isIdempotent(method), names nothing that is there.
		if res := c.Common().Signature().Results(); is(eval.CalleeName(c.Common())) && !(res.Len() == 1 && isBool(res.At(0).Type())) {
			return true
		}
		if fn := eval.Static(c.Common()); depth > 0 && fn != nil && len(fn.Blocks) > 0 && MentionedIn(fn, is, depth-1) {
			return true
		}
		if mc, ok := c.Common().Value.(*ssa.MakeClosure); ok && depth > 0 {
			return MentionedIn(mc.Fn.(*ssa.Function), is, depth-1)
		}
	}
	return false
}

func isBoolPtr(t types.Type) bool {
	p, ok := t.Underlying().(*types.Pointer)
	return ok && isBool(p.Elem())
}

// SaysNot reports whether a name says the opposite of its other words: nonRetryable,
// stopRetrying.
func SaysNot(name string) bool {
	lower := strings.ToLower(name)
	for _, w := range []string{"non", "not", "never", "cannot", "cant", "dont", "stop", "fatal", "permanent", "terminal", "unretr", "noretr"} {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}
