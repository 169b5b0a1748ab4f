package retryloop

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// choice says whether the method of a request decides if in runs again: in the
// turns of the region r, or, without one, at all.
//
// A branch that looks at the method decides when only one of its ways leads on
// to the repetition. One that sets a count or a flag decides as well; one that
// picks a policy may. A method that is only logged decides nothing.
func (f *finder) choice(in ssa.Instruction, r *Region) Choice {
	most := Blind
	for _, b := range f.Fn.Blocks {
		i := dataflow.IfOf(b)
		if i == nil {
			continue
		}
		look := f.pkg.looks(i.Cond, 0)
		if look == Blind {
			continue
		}
		switch {
		case f.decides(i, in, r):
			most = max(most, look)
		case look == Chosen && (r == nil || r.Loop == nil || !r.Contains(i)):
			most = max(most, f.sets(i))
		}
	}
	return most
}

// decides reports whether one way of a branch leads to the repetition and the
// other does not. One that lets a write through, and refuses what is no method
// that it knows, keeps no write from being repeated.
func (f *finder) decides(i *ssa.If, in ssa.Instruction, r *Region) bool {
	one, other := i.Block().Succs[0], i.Block().Succs[1]
	write := writeSide(i.Cond)
	if r != nil && r.Loop != nil && r.Contains(i) {
		_, a := r.Loop.Walk(one, nil)
		_, b := r.Loop.Walk(other, nil)
		return a != b && !(write == 0 && a || write == 1 && b)
	}
	to := in.Block()
	if r != nil && r.Loop != nil {
		to = r.Loop.Header
	}
	if r != nil && r.Loop == nil { // a recursion repeats by the call of itself
		for c := range dataflow.Instrs[*ssa.Call](f.Fn) {
			if c.Common().StaticCallee() == f.Fn {
				to = c.Block()
			}
		}
	}
	a, b := dataflow.Reaches(one, to), dataflow.Reaches(other, to)
	return a != b && !(write == 0 && a || write == 1 && b)
}

// writeSide returns which way of a branch a method takes that must not be repeated,
// when that is what the branch looks for; -1 for any other.
func writeSide(cond ssa.Value) int {
	cmp, ok := cond.(*ssa.BinOp)
	if !ok || cmp.Op != token.EQL && cmp.Op != token.NEQ {
		return -1
	}
	for _, v := range []ssa.Value{cmp.X, cmp.Y} {
		s, ok := dataflow.ConstString(v)
		switch {
		case !ok || !(fact.Send{Method: s}).Writes():
		case cmp.Op == token.EQL:
			return 0
		default:
			return 1
		}
	}
	return -1
}

// sets says what a branch by the method sets: a count or a flag, by which the
// repetition is chosen, or a function, which may look at anything.
func (f *finder) sets(i *ssa.If) Choice {
	most := Blind
	for phi := range dataflow.Instrs[*ssa.Phi](f.Fn) {
		if !i.Block().Dominates(phi.Block()) || !differs(phi, i) || orBody(phi) {
			continue
		}
		if dataflow.IsBool(phi.Type()) || dataflow.IsInteger(phi.Type()) {
			return Chosen
		}
		if _, isFunc := phi.Type().Underlying().(*types.Signature); isFunc {
			most = Perhaps
		}
	}
	return most
}

// orBody reports whether a condition also holds where the body can be sent once
// more, whatever else it asks: then the method decides nothing. That a body can
// be sent says nothing of the harm that it does.
func orBody(cond *ssa.Phi) bool {
	holds, body := false, false
	for _, e := range cond.Edges {
		if b, ok := dataflow.ConstBool(e); ok && b {
			holds = true
		}
		if cmp, ok := e.(*ssa.BinOp); ok && cmp.Op == token.NEQ && dataflow.IsNil(cmp.Y) {
			_, makes := cmp.X.Type().Underlying().(*types.Signature)
			body = body || makes
		}
	}
	return holds && body
}

// differs reports whether a merge has one value on one way of a branch and
// another on the other.
func differs(phi *ssa.Phi, i *ssa.If) bool {
	var first ssa.Value
	for k, pred := range phi.Block().Preds {
		if pred != i.Block() && !slices.Contains(i.Block().Succs, pred) {
			continue
		}
		e := phi.Edges[k]
		if first == nil {
			first = e
			continue
		}
		a, isConst := first.(*ssa.Const)
		b, areConst := e.(*ssa.Const)
		if isConst && areConst && (a.Value == nil) == (b.Value == nil) && (a.Value == nil || a.Value.ExactString() == b.Value.ExactString()) {
			continue
		}
		if e != first {
			return true
		}
	}
	return false
}

// safeWord marks what asks whether a request may be repeated.
var safeWord = regexp.MustCompile(`(?i)idempoten|(is|has)?safe(method|verb|request|to)|(retry|repeat|replay)able(method|verb)|(method|verb)s?(is)?(retry|repeat|replay|safe|allowed)|can(retry|replay)(method|verb)|(is|non|not)replayable`)

// looks says whether a condition depends on the method of a request. A
// predicate of the package is read; one that cannot be read, and that sees the
// request or the response, perhaps looks at it.
func (p *finders) looks(v ssa.Value, depth int) Choice {
	if depth > 6 {
		return Blind
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		return p.compares(v, depth)
	case *ssa.UnOp:
		return p.loads(v, depth)
	case *ssa.Parameter, *ssa.FreeVar:
		if safeWord.MatchString(v.Name()) {
			return Chosen
		}
	case *ssa.Phi:
		most := Blind
		for _, e := range v.Edges {
			most = max(most, p.looks(e, depth+2))
		}
		if orBody(v) {
			return Blind
		}
		return most
	case *ssa.Extract:
		switch tuple := v.Tuple.(type) {
		case *ssa.Call:
			if dataflow.IsBool(v.Type()) {
				return p.asks(tuple)
			}
		case *ssa.Lookup:
			return p.looks(tuple, depth)
		}
	case *ssa.Lookup:
		if isMethod(v.Index, 0) {
			return Chosen
		}
	case *ssa.Field:
		if safeWord.MatchString(dataflow.FieldOf(v)) {
			return Chosen
		}
	case *ssa.Call: // an error or a response of it says nothing of why it was made
		if dataflow.IsBool(v.Type()) {
			return p.asks(v)
		}
	}
	return Blind
}

// compares is looks for a comparison.
func (p *finders) compares(v *ssa.BinOp, depth int) Choice {
	if v.Op != token.EQL && v.Op != token.NEQ {
		return Blind
	}
	for _, pair := range [2][2]ssa.Value{{v.X, v.Y}, {v.Y, v.X}} {
		if s, ok := dataflow.ConstString(pair[1]); ok && (isWriteOrRead[s] || s != "" && isMethod(pair[0], 0) && !otherMethod[strings.ToUpper(s)]) {
			return Chosen
		}
	}
	if isMethod(v.X, 0) && isMethod(v.Y, 0) {
		return Chosen
	}
	return max(p.looks(v.X, depth+1), p.looks(v.Y, depth+1))
}

// loads is looks for a variable, or for the opposite of a condition.
func (p *finders) loads(v *ssa.UnOp, depth int) Choice {
	if v.Op != token.MUL {
		return p.looks(v.X, depth+1)
	}
	if safeWord.MatchString(dataflow.ValueName(v.X)) {
		return Chosen
	}
	most := Blind
	if v.Parent() != nil {
		for _, s := range p.Known.Scope(v.Parent()).StoresTo(v.X) {
			most = max(most, p.looks(s.Val, depth+1))
		}
	}
	return most
}

// isWriteOrRead holds the methods whose names say enough wherever they are
// compared; otherMethod those that say nothing of whether one may be repeated.
var (
	isWriteOrRead = map[string]bool{"GET": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true}
	otherMethod   = map[string]bool{"HEAD": true, "CONNECT": true, "OPTIONS": true, "TRACE": true}
)

// asks is looks for the result of a call.
func (p *finders) asks(c *ssa.Call) Choice {
	com := c.Common()
	if safeWord.MatchString(dataflow.CalleeName(com)) {
		return Chosen
	}
	if fn := p.byDefault(com); fn != nil {
		if p.reading {
			return Blind
		}
		return p.byMethod(fn)
	}
	if sum := p.Known.Of(com); sum != nil && sum.ByMethod {
		return Chosen
	}
	sees := false
	for _, a := range com.Args {
		if isMethod(a, 0) {
			return Chosen // slices.Contains(methods, req.Method)
		}
		sees = sees || send.IsRequest(a.Type()) || send.IsResponse(a.Type())
	}
	if sees {
		return Perhaps
	}
	return Blind
}

// byDefault returns the function of the package that a call reaches, unless users
// of the package put another one in its place: the only kind that the package
// makes into an interface, or all that it stores in a field.
func (p *finders) byDefault(c *ssa.CallCommon) *ssa.Function {
	if fn := p.Known.Body(c); fn != nil {
		return fn
	}
	if c.IsInvoke() {
		return p.Known.Implementation(c)
	}
	return p.defaultOf(c)
}

// byMethod says whether a function compares the method of a request with others,
// itself or by what it asks.
func (p *finders) byMethod(fn *ssa.Function) Choice {
	by, ok := p.methods[fn]
	if !ok {
		dataflow.Within(fn, 3, p.asked, func(g *ssa.Function) bool {
			by = max(by, p.comparesMethod(g))
			return by == Chosen
		})
		p.methods[fn] = by
	}
	return by
}

// asked returns the functions of the package that fn asks for a bool.
func (p *finders) asked(fn *ssa.Function) (fns []*ssa.Function) {
	for c := range dataflow.Instrs[*ssa.Call](fn) {
		if !slices.ContainsFunc(slices.Collect(c.Common().Signature().Results().Variables()), func(v *types.Var) bool { return dataflow.IsBool(v.Type()) }) {
			continue
		}
		if g := p.byDefault(c.Common()); g != nil {
			fns = append(fns, g)
		}
	}
	return fns
}

// comparesMethod says whether the code of a function looks at the method of a
// request, apart from the functions of the package that it asks.
func (p *finders) comparesMethod(fn *ssa.Function) (most Choice) {
	was := p.reading
	p.reading = true
	defer func() { p.reading = was }()
	for v := range dataflow.Instrs[ssa.Value](fn) {
		switch v.(type) {
		case *ssa.BinOp, *ssa.Lookup, *ssa.Call:
			most = max(most, p.looks(v, 0))
		}
	}
	return most
}

// refuses reports whether a function that is called again looks at the method
// after it has sent a request, to say whether the failure is to be repeated.
// Before that, it may look at it to build the request.
func (p *finders) refuses(op *ssa.Function) bool {
	var sends []*ssa.Call
	for c := range dataflow.Instrs[*ssa.Call](op) {
		sum := &fact.Summary{}
		if send.Effects(p.Known, c, false, sum); len(sum.Sends) > 0 && !strings.HasPrefix(dataflow.CalleeName(c.Common()), "NewRequest") {
			sends = append(sends, c)
		}
	}
	for i := range dataflow.Instrs[*ssa.If](op) {
		if p.looks(i.Cond, 0) == Chosen && slices.ContainsFunc(sends, func(c *ssa.Call) bool { return dataflow.Before(c, i) }) {
			return true
		}
	}
	return false
}

// isMethod reports whether v is the method of a request, by its name.
func isMethod(v ssa.Value, depth int) bool {
	if depth > 4 || !dataflow.IsText(v.Type()) {
		return false
	}
	switch v := v.(type) {
	case *ssa.ChangeType, *ssa.Convert:
		return isMethod(dataflow.Operand(v), depth+1)
	case *ssa.Call:
		if send.NamesMethod(dataflow.CalleeName(v.Common())) {
			return true
		}
		return dataflow.CalleePkg(v.Common()) == "strings" && len(v.Common().Args) == 1 && isMethod(v.Common().Args[0], depth+1)
	}
	return send.NamesMethod(dataflow.ValueName(v))
}
