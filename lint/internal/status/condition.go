package status

import (
	"go/constant"
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// cond evaluates a branch condition, and notes in used when the assumption has
// decided it: a loop whose branches never look at the status says nothing about
// statuses.
// The result maybe is always safe: both branches are followed then.
func (w *world) cond(v ssa.Value) truth {
	if w.enough() {
		return maybe
	}
	w.nest++
	defer func() { w.nest-- }()
	// The error is of the kind that the condition asks for: that is the
	// assumption.
	if w.cert && CertificateTest(v) {
		w.used = true
		return yes
	}
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op == token.NOT {
			return w.cond(v.X).not()
		}
		if x := cellValue(v); x != ssa.Value(v) {
			return w.cond(x)
		}
	case *ssa.Const:
		if b, ok := dataflow.ConstBool(v); ok {
			return truthOf(b)
		}
	case *ssa.BinOp:
		return w.compare(v)
	case *ssa.Call:
		return w.predicate(v)
	case *ssa.Phi:
		return w.phi(v)
	case *ssa.Lookup:
		return w.looksUp(v)
	case *ssa.Extract:
		return w.commaOk(v)
	}
	return maybe
}

// commaOk evaluates the second result of a map lookup, of a type assertion, of
// a search for the status in an error.
// status.FromError succeeds for every error with a code, which is the
// assumption.
func (w *world) commaOk(v *ssa.Extract) truth {
	if v.Index != 1 {
		return maybe
	}
	switch t := v.Tuple.(type) {
	case *ssa.Lookup:
		return w.looksUp(t)
	case *ssa.Call:
		if w.grpc && w.status != 0 && dataflow.CalleeName(t.Common()) == "FromError" {
			return yes
		}
	}
	return maybe
}

// phi evaluates the merged value of && and || from its constant edges: only an
// agreement of all edges counts.
// Edges from blocks that the assumption rules out do not count.
func (w *world) phi(v *ssa.Phi) truth {
	if w.depth > 3 {
		return maybe
	}
	live := w.reach(v.Parent().Blocks[0], nil)
	var edges agreement
	for i, e := range v.Edges {
		pred := v.Block().Preds[i]
		if !live[pred] || !w.edgeLive(pred, v.Block()) {
			continue
		}
		w.depth++
		t := w.cond(e)
		w.depth--
		if !edges.add(t) {
			return maybe
		}
	}
	return edges.truth
}

// edgeLive reports whether control may pass from one block to another. It looks
// at the branch alone, and believes a merged condition to go either way.
// To evaluate a merged condition here would lead back to its own edges.
func (w *world) edgeLive(from, to *ssa.BasicBlock) bool {
	i := dataflow.IfOf(from)
	if i == nil {
		return true
	}
	if _, isPhi := i.Cond.(*ssa.Phi); isPhi {
		return true
	}
	switch w.cond(i.Cond) {
	case yes:
		return from.Succs[0] == to
	case no:
		return from.Succs[1] == to
	}
	return true
}

// compare evaluates a comparison: of an error or a response with nil, of the
// status or its class with a constant. A small number is no HTTP status: it is
// an enumeration of something else, and stays open.
func (w *world) compare(b *ssa.BinOp) truth {
	x, y, op := b.X, b.Y, b.Op
	if dataflow.IsConst(x) {
		x, y, op = y, x, dataflow.Flip(op)
	}
	if dataflow.IsNil(y) && (op == token.EQL || op == token.NEQ) {
		t := maybe
		// An operation that yields a response has worked. Without an error there is
		// a response, and with gRPC the error is the response.
		if dataflow.IsError(x.Type()) {
			t = w.isNil(x, 0)
		} else if dataflow.IsNamed(x.Type(), "net/http", "Response") && !w.grpc {
			t = no
		}
		if op == token.NEQ {
			t = t.not()
		}
		return t
	}
	n, isInt := dataflow.ConstInt(y)
	if !isInt {
		return maybe
	}
	if q := hundreds(x); q != nil { // status/100 == 4
		if s, ok := w.statusValue(q); ok {
			w.used = true
			return compareInts(s/100, n, op)
		}
	}
	s, known := w.statusValue(x)
	if !known || !w.grpc && n != 0 && n < 100 { // another kind of code
		return maybe
	}
	w.used = true
	return compareInts(s, n, op)
}

// compareInts evaluates a comparison of two numbers; maybe for another operator.
func compareInts(a, b int64, op token.Token) truth {
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return truthOf(constant.Compare(constant.MakeInt64(a), op, constant.MakeInt64(b)))
	}
	return maybe
}

// predicate evaluates retryable(status), retryable(resp) and their like: a
// search for the status, a function of the package, which is entered, or one of
// another package, by its fact.
// At most a few calls are entered, one in another.
func (w *world) predicate(c *ssa.Call) truth {
	if dataflow.Static(c.Common()) == nil || w.depth > 3 {
		return maybe
	}
	if dataflow.Calls(c, "slices", "Contains") {
		return w.contains(c.Common().Args[0], c.Common().Args[1])
	}
	fn := w.judge.known.Body(c.Common())
	if fn == nil {
		return w.foreign(c)
	}
	if t := w.searches(c); t != maybe {
		return t
	}
	sub := w.enter(fn, c.Common().Args)
	t := sub.result(fn, -1, false)
	w.used = w.used || sub.used
	return t
}

// foreign asks the fact of a predicate of another package.
// Facts hold HTTP statuses only, so that gRPC codes stay open.
func (w *world) foreign(c *ssa.Call) truth {
	sum, bit := w.judge.known.Of(c.Common()), Bit(w.status)
	if sum == nil || sum.Yes == 0 || w.grpc || bit == 0 {
		return maybe
	}
	w.used = true
	return truthOf(sum.Yes&bit != 0)
}
