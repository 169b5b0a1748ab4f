package delay

import (
	"go/constant"
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// equalJitter recognizes d/2 + rand(d/2), with the sides and the halves in any
// form. The random side must be drawn from the same d: a constant of half a
// second plus up to a tenth of d is another thing.
// Equal jitter keeps half of the wait fixed, so clients still collide more than
// under full jitter.
func equalJitter(v *ssa.BinOp) bool {
	if v.Op != token.ADD {
		return false
	}
	// Either side may be the fixed one.
	for _, p := range [2][2]ssa.Value{{v.X, v.Y}, {v.Y, v.X}} {
		half := halfOf(p[0])
		if half == nil {
			continue
		}
		if arg := randomArg(p[1], 0); arg != nil && (arg == dataflow.Strip(p[0]) || sameHalf(arg, half) || dependsOn(arg, dataflow.Strip(p[0]), 0)) {
			return true
		}
	}
	return false
}

// EqualJitters returns the sums of a function that are waits with equal jitter,
// for the fix.
func EqualJitters(fn *ssa.Function) (found []*ssa.BinOp) {
	for v := range dataflow.Instrs[*ssa.BinOp](fn) {
		if equalJitter(v) {
			found = append(found, v)
		}
	}
	return found
}

// halfOf returns x when v is x/2, x>>1 or x*0.5.
// It returns nil for any other value.
func halfOf(v ssa.Value) ssa.Value {
	b, ok := dataflow.Strip(v).(*ssa.BinOp)
	if !ok {
		return nil
	}
	c, ok := b.Y.(*ssa.Const)
	if !ok || c.Value == nil {
		return nil
	}
	f, _ := constant.Float64Val(constant.ToFloat(c.Value))
	if b.Op == token.QUO && f == 2 || b.Op == token.SHR && f == 1 || b.Op == token.MUL && f == 0.5 {
		return b.X
	}
	return nil
}

// sameHalf reports whether arg is x/2 as well, of the x that half is.
// SSA makes a value of its own of each d/2, so the halves are compared by what
// they halve.
func sameHalf(arg, half ssa.Value) bool {
	h := halfOf(arg)
	return h != nil && dataflow.Strip(h) == dataflow.Strip(half)
}

// dependsOn reports whether v is computed from x by arithmetic alone.
// Four steps are enough for d/2 + 1 and the like.
func dependsOn(v, x ssa.Value, depth int) bool {
	v = dataflow.Strip(v)
	if v == x {
		return true
	}
	b, ok := v.(*ssa.BinOp)
	return ok && depth < 4 && (dependsOn(b.X, x, depth+1) || dependsOn(b.Y, x, depth+1))
}

// randomArg returns what a random draw reaches up to: the argument of rand.N(d),
// or d of rand.Float64() * d. It is nil when v is no draw.
func randomArg(v ssa.Value, depth int) ssa.Value {
	v = dataflow.Strip(v)
	if depth > 4 {
		return nil
	}
	switch v := v.(type) {
	case *ssa.Call:
		if isRandCall(v) && len(v.Common().Args) > 0 {
			return boundArg(v)
		}
	case *ssa.BinOp:
		if v.Op != token.MUL {
			return randomArg(v.X, depth+1)
		}
		if isRandCall(v.X) {
			return dataflow.Strip(v.Y)
		}
		if isRandCall(v.Y) {
			return dataflow.Strip(v.X)
		}
	}
	return nil
}

// boundArg is the last argument of a draw, receivers left out, stripped of a
// "+ 1" that keeps it from being zero.
// The last argument is the bound in math/rand and in math/rand/v2 alike.
func boundArg(c *ssa.Call) ssa.Value {
	args := c.Common().Args
	a := dataflow.Strip(args[len(args)-1])
	if b, ok := a.(*ssa.BinOp); ok && b.Op == token.ADD && dataflow.IsConst(b.Y) {
		return dataflow.Strip(b.X)
	}
	return a
}

// isRandCall reports whether v is the result of a random source.
func isRandCall(v ssa.Value) bool {
	c, ok := dataflow.Strip(v).(*ssa.Call)
	return ok && randPkgs[dataflow.CalleePkg(c.Common())]
}
