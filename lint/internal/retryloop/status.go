package retryloop

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Statuses are the answers that predicates and loops are tried with: a
// success, the six that must not be retried, and two that may be.
var Statuses = [9]int64{200, 400, 401, 403, 404, 409, 422, 429, 503}

// Codes are the same for gRPC: OK, the five of R-4, and UNAVAILABLE.
var Codes = [7]int64{0, 3, 5, 7, 12, 16, 14}

// world is one assumption under which code is evaluated: every response has
// this status (or every gRPC error this code), and nothing else fails.
type world struct {
	status int64
	grpc   bool
	sums   *summaries
	res    *resolver
	depth  int
	used   bool          // some branch depended on the assumption
	params map[int]int64 // parameters of a helper that hold the status
	fn     *ssa.Function
	steps  *int // left before the evaluation gives up; shared with helpers
	nest   int  // evaluations under way
}

const evalSteps, evalNest = 4000, 40

// enough counts a step of the evaluation and reports whether to give up.
func (w *world) enough() bool {
	*w.steps--
	return *w.steps < 0 || w.nest > evalNest
}

type truth int

const (
	maybe truth = iota
	yes
	no
)

func (t truth) not() truth {
	switch t {
	case yes:
		return no
	case no:
		return yes
	}
	return maybe
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// statusValue returns the assumed value of v when v is the status.
func (w *world) statusValue(v ssa.Value) (int64, bool) {
	switch v := v.(type) {
	case *ssa.Convert:
		return w.statusValue(v.X)
	case *ssa.ChangeType:
		return w.statusValue(v.X)
	case *ssa.Parameter:
		for i, p := range w.fn.Params {
			if p == v {
				n, ok := w.params[i]
				return n, ok
			}
		}
		return 0, false
	case *ssa.Phi:
		if w.grpc {
			return 0, false
		}
		found := false
		for _, e := range v.Edges {
			if _, isConst := e.(*ssa.Const); isConst || e == v {
				continue
			}
			if !IsStatus(e) {
				return 0, false
			}
			found = true
		}
		return w.status, found
	case *ssa.UnOp:
		if a, ok := v.X.(*ssa.Alloc); ok && v.Op == token.MUL && !w.grpc {
			found := false
			for _, s := range w.res.storesTo(a) {
				if IsStatus(s.Val) {
					found = true
				} else if _, isConst := s.Val.(*ssa.Const); !isConst {
					return 0, false
				}
			}
			return w.status, found
		}
	}
	if w.grpc {
		return w.status, isCode(v)
	}
	return w.status, IsStatus(v)
}

// isCode reports whether v is a gRPC code taken from an error or a status.
func isCode(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && isNamed(v.Type(), "google.golang.org/grpc/codes", "Code") && calleeName(c.Common()) == "Code"
}

// cond evaluates a branch condition.
func (w *world) cond(v ssa.Value) truth {
	if w.enough() {
		return maybe
	}
	w.nest++
	defer func() { w.nest-- }()
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op == token.NOT {
			return w.cond(v.X).not()
		}
		if x := cellValue(v); x != ssa.Value(v) {
			return w.cond(x)
		}
	case *ssa.Const:
		if v.Value != nil && v.Value.String() == "true" {
			return yes
		}
		if v.Value != nil && v.Value.String() == "false" {
			return no
		}
	case *ssa.BinOp:
		return w.compare(v)
	case *ssa.Call:
		return w.predicate(v)
	case *ssa.Phi:
		return w.phi(v)
	}
	return maybe
}

// phi evaluates the merged value of && and || from its constant edges: only an
// agreement of all edges counts.
func (w *world) phi(v *ssa.Phi) truth {
	if w.depth > 3 {
		return maybe
	}
	live := w.reach(v.Parent().Blocks[0], v.Parent(), nil)
	result, first := maybe, true
	for i, e := range v.Edges {
		pred := v.Block().Preds[i]
		if !live[pred] || !w.edgeLive(pred, v.Block()) {
			continue
		}
		w.depth++
		t := w.cond(e)
		w.depth--
		if first {
			result, first = t, false
		} else if t != result {
			return maybe
		}
	}
	return result
}

func (w *world) edgeLive(from, to *ssa.BasicBlock) bool {
	i := ifOf(from)
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

func (w *world) compare(b *ssa.BinOp) truth {
	x, y, op := b.X, b.Y, b.Op
	if _, isConst := x.(*ssa.Const); isConst {
		x, y, op = y, x, flip(op)
	}
	if isNil(y) && (op == token.EQL || op == token.NEQ) {
		t := maybe
		if isError(x.Type()) {
			t = w.isNil(x, 0)
		} else if isNamed(x.Type(), "net/http", "Response") && !w.grpc {
			t = no
		}
		if op == token.NEQ {
			t = t.not()
		}
		return t
	}
	c, ok := y.(*ssa.Const)
	if !ok {
		return maybe
	}
	n, isInt := constInt(c)
	if q, ok := x.(*ssa.BinOp); ok && isInt && q.Op == token.QUO { // status/100 == 4
		if d, ok := q.Y.(*ssa.Const); ok && d.Int64() == 100 {
			if s, ok := w.statusValue(q.X); ok {
				w.used = true
				return compareInts(s/100, n, op)
			}
		}
	}
	s, known := w.statusValue(x)
	if !known || !isInt {
		return maybe
	}
	w.used = true
	return compareInts(s, n, op)
}

func compareInts(a, b int64, op token.Token) truth {
	switch op {
	case token.EQL:
		return truthOf(a == b)
	case token.NEQ:
		return truthOf(a != b)
	case token.LSS:
		return truthOf(a < b)
	case token.LEQ:
		return truthOf(a <= b)
	case token.GTR:
		return truthOf(a > b)
	case token.GEQ:
		return truthOf(a >= b)
	}
	return maybe
}

// predicate evaluates retryable(status), retryable(resp) and their like.
func (w *world) predicate(c *ssa.Call) truth {
	fn := static(c.Common())
	if fn == nil || w.depth > 3 {
		return maybe
	}
	if len(fn.Blocks) == 0 || !w.sums.own(fn) {
		return w.foreign(c)
	}
	sub := w.enter(fn, c.Common().Args)
	if sub == nil {
		return maybe
	}
	t := sub.result(fn, -1, false)
	w.used = w.used || sub.used
	return t
}

// foreign asks the fact of a predicate of another package.
func (w *world) foreign(c *ssa.Call) truth {
	sum := w.sums.of(c.Common())
	if sum == nil || sum.Yes == 0 || w.grpc {
		return maybe
	}
	for i, s := range Statuses {
		if s == w.status {
			w.used = true
			return truthOf(sum.Yes&(1<<i) != 0)
		}
	}
	return maybe
}

// enter makes the world of a helper; nil when it cannot see the status.
func (w *world) enter(fn *ssa.Function, args []ssa.Value) *world {
	sub := &world{status: w.status, grpc: w.grpc, sums: w.sums, res: w.sums.finder(fn).res, depth: w.depth + 1, params: map[int]int64{}, fn: fn, steps: w.steps, nest: w.nest + 1}
	for i, a := range args {
		if n, ok := w.statusValue(a); ok && i < len(fn.Params) {
			sub.params[i] = n
		}
	}
	return sub
}

// isNil evaluates whether an error is nil: an operation that yields a response
// has worked, a helper that turns the status into an error is entered, and
// anything else is taken to have worked.
func (w *world) isNil(v ssa.Value, depth int) truth {
	if depth > 6 || w.enough() {
		return maybe
	}
	w.nest++
	defer func() { w.nest-- }()
	switch v := v.(type) {
	case *ssa.Const:
		return truthOf(v.IsNil())
	case *ssa.MakeInterface:
		return no
	case *ssa.ChangeInterface:
		return w.isNil(v.X, depth+1)
	case *ssa.UnOp:
		if x := cellValue(v); x != ssa.Value(v) {
			return w.isNil(x, depth+1)
		}
	case *ssa.Extract:
		if c, ok := v.Tuple.(*ssa.Call); ok {
			return w.callNil(c, v.Index)
		}
	case *ssa.Call:
		return w.callNil(v, -1)
	case *ssa.Phi:
		result, first := maybe, true
		for _, e := range v.Edges {
			if e == v {
				continue
			}
			t := w.isNil(e, depth+1)
			if first {
				result, first = t, false
			} else if t != result {
				return maybe
			}
		}
		return result
	}
	return maybe
}

func (w *world) callNil(c *ssa.Call, index int) truth {
	com := c.Common()
	if pkg, name := calleePkg(com), calleeName(com); pkg == "fmt" && name == "Errorf" || pkg == "errors" && name == "New" {
		return no
	}
	if w.grpc && w.status != 0 && isRPC(com) {
		w.used = true
		return no
	}
	fn := static(com)
	if fn == nil || w.depth > 3 {
		return yes
	}
	if len(fn.Blocks) == 0 || !w.sums.own(fn) {
		if sum := w.sums.of(com); sum != nil && !w.grpc {
			for i, s := range Statuses {
				if s == w.status && sum.Fails&(1<<i) != 0 {
					w.used = true
					return no
				}
			}
		}
		return yes
	}
	sub := w.enter(fn, com.Args)
	if index < 0 {
		index = 0
	}
	t := sub.result(fn, index, true)
	if t == no && sub.used {
		w.used = true
		return no
	}
	return yes
}

// isRPC reports whether a call is one of a generated gRPC client: it takes
// grpc.CallOptions.
func isRPC(c *ssa.CallCommon) bool {
	sig := c.Signature()
	if !sig.Variadic() {
		return false
	}
	sl, ok := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice)
	return ok && isNamed(sl.Elem(), "google.golang.org/grpc", "CallOption")
}

// reach returns the blocks that can run under the assumption, from start, and
// never past a block that stop names.
func (w *world) reach(start *ssa.BasicBlock, fn *ssa.Function, stop func(*ssa.BasicBlock) bool) map[*ssa.BasicBlock]bool {
	seen := map[*ssa.BasicBlock]bool{}
	work := []*ssa.BasicBlock{start}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[b] {
			continue
		}
		seen[b] = true
		if noReturn(b) {
			continue
		}
		succs := b.Succs
		if i := ifOf(b); i != nil {
			if _, isPhi := i.Cond.(*ssa.Phi); !isPhi || w.depth == 0 {
				switch w.condAt(i) {
				case yes:
					succs = succs[:1]
				case no:
					succs = succs[1:]
				}
			}
		}
		for _, s := range succs {
			if stop == nil || !stop(s) {
				work = append(work, s)
			}
		}
	}
	return seen
}

func (w *world) condAt(i *ssa.If) truth {
	if p, ok := i.Cond.(*ssa.Phi); ok {
		w.depth += 2
		t := w.phi(p)
		w.depth -= 2
		return t
	}
	return w.cond(i.Cond)
}

// result evaluates what fn returns: its bool result, or whether result index
// is a nil error. Only an agreement of all live returns counts.
func (w *world) result(fn *ssa.Function, index int, wantNil bool) truth {
	live := w.reach(fn.Blocks[0], fn, nil)
	result, first := maybe, true
	for b := range live {
		ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
		if !ok {
			continue
		}
		var t truth
		switch {
		case wantNil:
			if index >= len(ret.Results) || !isError(ret.Results[index].Type()) {
				return maybe
			}
			t = w.isNil(w.livePhi(cellValue(ret.Results[index]), live), 0)
		case len(ret.Results) == 0:
			return maybe
		default:
			t = w.cond(w.livePhi(cellValue(ret.Results[0]), live))
		}
		if first {
			result, first = t, false
		} else if t != result {
			return maybe
		}
	}
	return result
}

// cellValue follows the read of a variable that could not be lifted (a result
// of a function that defers) to the last store before it.
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

// livePhi replaces a phi that has one live edge with that edge's value.
func (w *world) livePhi(v ssa.Value, live map[*ssa.BasicBlock]bool) ssa.Value {
	p, ok := v.(*ssa.Phi)
	if !ok {
		return v
	}
	var only ssa.Value
	for i, e := range p.Edges {
		if !live[p.Block().Preds[i]] || !w.edgeLive(p.Block().Preds[i], p.Block()) {
			continue
		}
		if only != nil && only != e {
			return v
		}
		only = e
	}
	if only == nil {
		return v
	}
	return only
}
