package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
)

// span is the least and the greatest value that an expression can have.
type span struct{ low, high *big.Int }

// positive reports whether an expression is certainly greater than zero, and
// small enough for its type on the way there.
func (s site) positive(e ast.Expr, c *counter) bool {
	v := s.spanOf(e, c)
	return v != nil && v.low.Sign() > 0
}

// spanOf computes the span of a sum, product or shift of constants and of the
// loop's counter; nil when it is not known, or leaves the range of an int64. An
// int of 32 bits is no matter: a conversion to a duration stands around it or
// the compiler refuses it.
func (s site) spanOf(e ast.Expr, c *counter) *span {
	if tv := s.TypesInfo.Types[e]; tv.Value != nil {
		n, ok := s.constInt(e)
		if !ok {
			return nil
		}
		return &span{big.NewInt(n), big.NewInt(n)}
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.spanOf(e.X, c)
	case *ast.Ident:
		if c != nil && c.known && s.is(e, c.obj) {
			return &span{big.NewInt(c.first), big.NewInt(c.last)}
		}
	case *ast.CallExpr:
		// A conversion to a duration or to int64 changes nothing of a value that is
		// in range.
		if tv := s.TypesInfo.Types[e.Fun]; tv.IsType() && len(e.Args) == 1 {
			if b, ok := tv.Type.Underlying().(*types.Basic); ok && b.Kind() == types.Int64 {
				return s.spanOf(e.Args[0], c)
			}
		}
	case *ast.BinaryExpr:
		x, y := s.spanOf(e.X, c), s.spanOf(e.Y, c)
		if x != nil && y != nil {
			return combine(x, y, e.Op)
		}
	}
	return nil
}

// combine computes the span of an operation from those of its operands, none of
// which may be negative: then the least comes from the least ones.
func combine(x, y *span, op token.Token) *span {
	if x.low.Sign() < 0 || y.low.Sign() < 0 {
		return nil
	}
	r := &span{new(big.Int), new(big.Int)}
	switch op {
	case token.ADD:
		r.low.Add(x.low, y.low)
		r.high.Add(x.high, y.high)
	case token.SUB:
		r.low.Sub(x.low, y.high)
		r.high.Sub(x.high, y.low)
	case token.MUL:
		r.low.Mul(x.low, y.low)
		r.high.Mul(x.high, y.high)
	case token.SHL:
		if y.high.Cmp(big.NewInt(62)) > 0 {
			return nil
		}
		r.low.Lsh(x.low, uint(y.low.Int64()))
		r.high.Lsh(x.high, uint(y.high.Int64()))
	default:
		return nil
	}
	if !r.low.IsInt64() || !r.high.IsInt64() {
		return nil
	}
	return r
}
