package status

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// A number is an integer of which it is known for each status between which two
// numbers it lies: the status itself, a constant, one of several, what simple
// arithmetic makes of them.
type number struct {
	at     func(status int64) (n span, ok bool)
	status bool // the status itself
	fixed  bool // the same for all
}

// theStatus is the number of a response.
var theStatus = &number{at: func(s int64) (span, bool) { return span{s, s}, true }, status: true}

// fixedNumber is a number that does not depend on the status.
func fixedNumber(n span) *number {
	return &number{at: func(int64) (span, bool) { return n, true }, fixed: true}
}

// constantNumber is a number that is known.
func constantNumber(n int64) *number { return fixedNumber(span{n, n}) }

// num returns what an integer is, or nil when that is not known: a status, as a
// field or a method of a response, a parameter that holds it, a variable that
// is set from one, or a result of a helper.
func (e *eval) num(v ssa.Value) *number {
	if !e.spend() {
		return nil
	}
	defer e.done()
	if !e.cert && e.isStatus(v) {
		e.guessed = e.guessed || !e.grpc && vague(v)
		e.leaf(v)
		return theStatus
	}
	switch v := v.(type) {
	case *ssa.Const:
		if n, ok := dataflow.ConstInt(v); ok {
			return constantNumber(n)
		}
	case *ssa.Convert, *ssa.ChangeType:
		if x := dataflow.Operand(v); dataflow.IsInteger(x.Type()) {
			return e.num(x)
		}
	case *ssa.Parameter:
		if k, ok := e.params[v]; ok && k.num != nil {
			if k.num.status {
				e.leaf(v)
			}
			return k.num
		}
	case *ssa.BinOp:
		return e.arithmetic(v)
	case *ssa.Phi:
		if k, ok := e.given(v); ok {
			return k.num
		}
		return e.numPhi(v)
	case *ssa.UnOp:
		return e.numRead(v)
	case *ssa.Field:
		if !e.grpc && !e.cert && e.j.heldStatus(dataflow.FieldVar(v)) {
			e.leaf(v)
			return theStatus
		}
	case *ssa.Extract:
		if c, ok := v.Tuple.(*ssa.Call); ok {
			return e.numResult(c, v.Index, v)
		}
	case *ssa.Call:
		return e.numResult(v, 0, v)
	}
	return nil
}

// isStatus reports whether v holds what the assumption speaks of.
func (e *eval) isStatus(v ssa.Value) bool {
	if e.grpc {
		return isCode(v)
	}
	return IsStatus(v)
}

// arithmetic evaluates status/100, status-400 and their like.
func (e *eval) arithmetic(b *ssa.BinOp) *number {
	switch b.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
	default:
		return nil
	}
	x, y := e.num(b.X), e.num(b.Y)
	if x == nil || y == nil {
		return nil
	}
	return &number{fixed: x.fixed && y.fixed, at: func(s int64) (span, bool) {
		m, ok := x.at(s)
		n, ok2 := y.at(s)
		if !ok || !ok2 {
			return span{}, false
		}
		return m.arithmetic(b.Op, n)
	}}
}

// numPhi merges integers. Beside the status, a constant that is none is what the
// variable began with, or holds without a response: it is none of the
// assumption's business.
func (e *eval) numPhi(p *ssa.Phi) *number {
	e.flows++
	if e.active[p] {
		return nil
	}
	e.active[p] = true
	defer delete(e.active, p)
	var sources []source
	for i, v := range p.Edges {
		if v == ssa.Value(p) {
			continue
		}
		live := e.live(p.Block(), p.Block().Preds[i])
		if live.Empty() {
			continue
		}
		n := e.num(v)
		if n == nil {
			return nil
		}
		sources = append(sources, source{live, n})
	}
	if slices.ContainsFunc(sources, func(s source) bool { return !s.num.fixed }) {
		sources = slices.DeleteFunc(sources, func(s source) bool { return s.num.fixed && !s.num.among(e.all) })
	}
	return e.oneOf(sources)
}

// oneOf is the number that comes from one of several sources, or nil.
func (e *eval) oneOf(sources []source) *number {
	switch {
	case len(sources) == 0:
		return nil
	case !slices.ContainsFunc(sources, func(s source) bool { return !s.num.status }):
		return theStatus
	}
	// The same for all statuses, when no branch on one chose it.
	if !slices.ContainsFunc(sources, func(s source) bool { return !s.num.fixed || !e.all.Minus(s.live).Empty() }) {
		if n, ok := hull(sources, nil); ok {
			return fixedNumber(n)
		}
	}
	return &number{at: func(s int64) (span, bool) { return hull(sources, &s) }}
}

// hull is the span of what the sources say that are live after a status; of all
// of them, when it is nil.
func hull(sources []source, status *int64) (all span, known bool) {
	for _, src := range sources {
		var of int64
		if status != nil {
			if of = *status; !src.live.Has(of) {
				continue
			}
		}
		n, ok := src.num.at(of)
		if !ok {
			return span{}, false
		}
		if known {
			n = n.or(all)
		}
		all, known = n, true
	}
	return all, known
}

// source is a number that a variable has after some statuses.
type source struct {
	live codeset.Set
	num  *number
}

// among reports whether a fixed number is one of a set.
func (n *number) among(set codeset.Set) bool {
	s, ok := n.at(0)
	return ok && s.one() && set.Has(s.lo)
}

// numRead evaluates a variable or a field by what is stored in it. A constant
// beside the status is what it began with.
func (e *eval) numRead(u *ssa.UnOp) *number {
	if u.Op != token.MUL {
		return nil
	}
	if x := cellValue(u); x != ssa.Value(u) {
		return e.num(x)
	}
	if g, ok := u.X.(*ssa.Global); ok {
		if n, ok := dataflow.ConstInt(e.initial(g)); ok {
			return constantNumber(n)
		}
		return nil
	}
	if e.active[u.X] {
		return nil
	}
	e.active[u.X] = true
	defer delete(e.active, u.X)
	found := false
	for _, s := range e.sc.StoresTo(u.X) {
		if n, ok := dataflow.ConstInt(s.Val); ok && !e.all.Has(n) {
			continue
		}
		if n := e.num(s.Val); n == nil || !n.status {
			return nil
		}
		found = true
	}
	if fa, ok := u.X.(*ssa.FieldAddr); ok && !found && !e.grpc && !e.cert {
		found = e.j.heldStatus(dataflow.FieldVar(fa))
	}
	if !found {
		return nil
	}
	e.leaf(u)
	return theStatus
}

// numResult evaluates a result of a call: of a function of the package, which
// is entered, or one that its declaration calls a status.
func (e *eval) numResult(c *ssa.Call, index int, v ssa.Value) *number {
	if e.grpc || e.cert || !dataflow.IsInteger(v.Type()) {
		return nil
	}
	results := c.Common().Signature().Results()
	if index < results.Len() && isStatusField(results.At(index).Name(), v.Type()) && results.At(index).Name() != "code" {
		e.leaf(v)
		return theStatus
	}
	fn, args := e.callee(c.Common())
	switch sum := e.j.known.Of(c.Common()); {
	case fn == nil && (sum == nil || sum.Status != index+1):
		return nil
	case fn != nil && !e.enters(fn, args):
		return nil
	case fn != nil:
		if sub := e.enter(fn, args); !sub.returnsStatus(index) {
			return sub.computed(index)
		}
	}
	e.leaf(v)
	return theStatus
}

// returnsStatus reports whether a result of the function is the status, wherever
// it is one at all.
func (e *eval) returnsStatus(index int) (found bool) {
	for ret := range dataflow.Instrs[*ssa.Return](e.sc.Fn) {
		if index >= len(ret.Results) {
			return false
		}
		r := cellValue(ret.Results[index])
		if n, ok := dataflow.ConstInt(r); ok && !e.all.Has(n) {
			continue
		}
		if n := e.num(r); n == nil || !n.status {
			return false
		}
		found = true
	}
	return found
}

// computed returns what the function makes of the status, such as its class, or nil
// when it makes something else of it on any way.
func (e *eval) computed(index int) *number {
	var sources []source
	for ret := range dataflow.Instrs[*ssa.Return](e.sc.Fn) {
		live := e.whole().in[ret.Block()]
		if live.Empty() || dataflow.NoReturn(ret.Block()) {
			continue
		}
		n := e.num(cellValue(ret.Results[index]))
		if n == nil {
			return nil
		}
		sources = append(sources, source{live, n})
	}
	return e.oneOf(sources)
}

// IsStatus reports whether v is the status code of a response: a field or a
// method named StatusCode, or an integer field of a like name. A nil v is none.
// Clients of all makes call it so, and their packages are too many to list.
func IsStatus(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.UnOp:
		fa, ok := v.X.(*ssa.FieldAddr)
		return ok && v.Op == token.MUL && isStatusField(dataflow.FieldOf(fa), v.Type())
	case *ssa.Field:
		return isStatusField(dataflow.FieldOf(v), v.Type())
	case *ssa.Call:
		return isStatusMethod(v.Common())
	case *ssa.Convert:
		return IsStatus(v.X)
	}
	return false
}

// vague reports whether no more than the name Code says that v is a status: other
// protocols have codes of their own, some with the numbers of HTTP.
func vague(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.UnOp:
		return strings.EqualFold(dataflow.FieldOf(v.X), "code")
	case *ssa.Field:
		return strings.EqualFold(dataflow.FieldOf(v), "code")
	case *ssa.Call:
		return strings.EqualFold(trimGet(dataflow.CalleeName(v.Common())), "code")
	case *ssa.Convert:
		return vague(v.X)
	}
	return false
}

// isStatusMethod reports whether c asks a response for its status.
func isStatusMethod(c *ssa.CallCommon) bool {
	if dataflow.CalleeName(c) == "StatusCode" {
		return true
	}
	f := dataflow.Callee(c)
	sig := c.Signature()
	if f == nil || sig.Recv() == nil || sig.Params().Len() > 0 || sig.Results().Len() != 1 {
		return false
	}
	return isStatusField(trimGet(f.Name()), sig.Results().At(0).Type())
}

// trimGet removes the Get that generated accessors begin with.
func trimGet(name string) string {
	if len(name) > 3 && name[:3] == "Get" {
		return name[3:]
	}
	return name
}

// isStatusField reports whether a field of that name and type holds a status:
// a plain integer, not an enumeration.
// An enumeration named Status is the state of something, not a response.
func isStatusField(name string, t types.Type) bool {
	if !dataflow.IsInteger(t) {
		return false
	}
	if name == "StatusCode" {
		return true
	}
	basic, ok := types.Unalias(t).(*types.Basic)
	if !ok || !statusField.MatchString(name) {
		return false
	}
	// No status is unsigned, as the codes of other protocols are.
	return basic.Info()&types.IsUnsigned == 0 || !strings.EqualFold(name, "code")
}

// statusField names fields and variables that hold the status of a response
// besides the StatusCode of net/http.
var statusField = regexp.MustCompile(`(?i)^(http|resp|response)?_?status(_?code)?$|^(http|resp|response)_?code$|^code$`)

// statusName marks integer parameters that hold a status.
var statusName = regexp.MustCompile(`(?i)status|code`)

// isCode reports whether v is a gRPC code taken from an error or a status: the
// result of a function or method Code of that type.
// A field of that type is left out: where it was set is not known.
func isCode(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && isCodeType(v.Type()) && dataflow.CalleeName(c.Common()) == "Code"
}

// IsCode reports whether v is a gRPC code taken from an error.
func IsCode(v ssa.Value) bool { return isCode(v) }

func isCodeType(t types.Type) bool {
	return dataflow.IsNamed(t, "google.golang.org/grpc/codes", "Code")
}

// Reads reports whether a call only takes the status out of an error or out of a
// response.
func Reads(c *ssa.CallCommon) bool {
	return isStatusMethod(c) || dataflow.CalleePkg(c) == "google.golang.org/grpc/status"
}

// Sources returns the operations of l that produced the response whose status v
// is, or the error whose code v is.
// It looks through the functions that take a status out of an error.
func Sources(f *dataflow.Func, v ssa.Value, l *dataflow.Loop) []*ssa.Call {
	return sources(f, v, l, map[*ssa.Call]bool{})
}

// sources is Sources without the calls that it has looked through already: a status
// may be made of itself, in another turn.
func sources(f *dataflow.Func, v ssa.Value, l *dataflow.Loop, seen map[*ssa.Call]bool) []*ssa.Call {
	var ops []*ssa.Call
	for _, c := range f.Origins(v, l) {
		name := dataflow.CalleeName(c.Common())
		if !isStatusMethod(c.Common()) && !slices.Contains([]string{"Code", "FromError", "Convert", "Status"}, name) {
			ops = append(ops, c)
			continue
		}
		if seen[c] {
			continue
		}
		seen[c] = true
		args := c.Common().Args
		if c.Common().IsInvoke() {
			args = []ssa.Value{c.Common().Value}
		}
		for _, a := range args {
			ops = append(ops, sources(f, a, l, seen)...)
		}
	}
	return ops
}
