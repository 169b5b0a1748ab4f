package status

import (
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// cond evaluates a condition: for which statuses it certainly holds, and for
// which it certainly does not. What does not depend on the flow is evaluated
// once.
func (e *eval) cond(v ssa.Value) split {
	if s, ok := e.conds[v]; ok {
		e.leaves = append(e.leaves, s.leaves...)
		e.guessed = e.guessed || s.guessed
		return s.split
	}
	if !e.spend() {
		return split{}
	}
	defer e.done()
	flows, leaves, guessed := e.flows, len(e.leaves), e.guessed
	e.guessed = false
	s := judged{split: e.evaluate(v)}
	if s.split == (split{}) {
		e.guessed = false // what was guessed decided nothing
	}
	s.leaves, s.guessed = e.leaves[leaves:len(e.leaves):len(e.leaves)], e.guessed
	e.guessed = e.guessed || guessed
	if e.flows == flows && !e.spent {
		e.conds[v] = s
	}
	return s.split
}

func (e *eval) evaluate(v ssa.Value) split {
	// The error is of the kind that the condition asks for: that is the
	// assumption.
	if e.cert && CertificateTest(v) {
		e.asked = true
		return e.always(true)
	}
	switch v := v.(type) {
	case *ssa.Const:
		if b, ok := dataflow.ConstBool(v); ok {
			return e.always(b)
		}
	case *ssa.Parameter:
		return e.params[v].truth
	case *ssa.UnOp:
		return e.boolRead(v)
	case *ssa.BinOp:
		return e.compare(v)
	case *ssa.Call:
		return e.predicate(v, 0)
	case *ssa.Phi:
		if k, ok := e.given(v); ok {
			return k.truth
		}
		return e.merged(v, e.cond)
	case *ssa.Lookup: // set[status], of bools
		return e.contains(v.X, v.Index)
	case *ssa.ChangeType:
		return e.cond(v.X)
	case *ssa.Extract:
		return e.part(v)
	}
	return split{}
}

// boolRead evaluates a negation, or the read of a variable that the function
// stores a condition in.
func (e *eval) boolRead(u *ssa.UnOp) split {
	switch u.Op {
	case token.NOT:
		return e.cond(u.X).not()
	case token.MUL:
		e.flows++
		if x := cellValue(u); x != ssa.Value(u) {
			return e.cond(x)
		}
		if stores := e.sc.StoresTo(u.X); len(stores) == 1 && !e.active[u.X] && holdsFrom(stores[0], u) {
			e.active[u.X] = true
			defer delete(e.active, u.X)
			return e.cond(stores[0].Val)
		}
	}
	return split{}
}

// holdsFrom reports whether a variable, which a function sets once, has that value
// when it is read: not before, and not what something else has set meanwhile.
func holdsFrom(s *ssa.Store, read *ssa.UnOp) bool {
	cell, ok := s.Addr.(*ssa.Alloc)
	return dataflow.Before(s, read) && !(ok && outOfSight(cell))
}

// part evaluates one of several results: of a map lookup, of a type assertion,
// of a function.
func (e *eval) part(v *ssa.Extract) split {
	switch t := v.Tuple.(type) {
	case *ssa.Lookup:
		return e.contains(t.X, t.Index)
	case *ssa.TypeAssert:
		if v.Index == 1 && dataflow.IsError(t.X.Type()) {
			return e.errorAs(t.X, t.AssertedType)
		}
	case *ssa.Call:
		// status.FromError succeeds for every error with a code, and for none.
		if e.grpc && v.Index == 1 && dataflow.CalleeName(t.Common()) == "FromError" {
			return e.always(true)
		}
		if dataflow.IsBool(v.Type()) {
			return e.predicate(t, v.Index)
		}
	}
	return split{}
}

// compare evaluates a comparison: of an error or a response with nil, of errors,
// of bools, of what is known for each status.
func (e *eval) compare(b *ssa.BinOp) split {
	x, y, op := b.X, b.Y, b.Op
	if dataflow.IsConst(x) {
		x, y, op = y, x, dataflow.Flip(op)
	}
	equality := op == token.EQL || op == token.NEQ
	var equal split
	switch {
	case dataflow.IsInteger(x.Type()):
		return e.compareInts(b, x, y, op)
	case !equality:
		return split{}
	case dataflow.IsNil(y):
		equal = e.isNil(x)
	case dataflow.IsError(x.Type()):
		equal = e.errorIs(x, y)
	case dataflow.IsBool(x.Type()):
		equal = e.cond(x)
		if b, ok := dataflow.ConstBool(y); !ok {
			return split{}
		} else if !b {
			equal = equal.not()
		}
	default:
		if s, ok := dataflow.ConstString(y); ok {
			equal = e.isText(x, s)
		}
	}
	if op == token.NEQ {
		return equal.not()
	}
	return equal
}

// isNil evaluates whether an error or a response is nil. An operation that yields
// a response has worked; with gRPC the error is the response.
func (e *eval) isNil(x ssa.Value) split {
	if dataflow.IsError(x.Type()) {
		return e.null(x)
	}
	if dataflow.IsNamed(x.Type(), "net/http", "Response") && !e.grpc && !e.cert {
		return e.always(false)
	}
	// The status that is taken out of an error.
	if e.grpc && dataflow.TypeName(x.Type()) == "Status" && dataflow.Under(dataflow.TypePkg(x.Type()), "google.golang.org/grpc") {
		return e.succeeded()
	}
	// A function that is there by default.
	if _, ok := x.Type().Underlying().(*types.Signature); ok && !e.cert && len(e.j.functions(e.defaults(x))) > 0 {
		return e.always(false)
	}
	return split{}
}

// compareInts evaluates a comparison of two integers of which one depends on the
// status. A small number, or a large one, is no HTTP status: it is an
// enumeration of something else, and the comparison stays open.
func (e *eval) compareInts(b *ssa.BinOp, x, y ssa.Value, op token.Token) split {
	if s, ok := e.searching(y, op); ok {
		return s
	}
	m, n := e.num(x), e.num(y)
	if m == nil || m.fixed {
		x, y, m, n, op = y, x, n, m, dataflow.Flip(op)
	}
	if m == nil || m.fixed {
		return split{}
	}
	if n == nil {
		if m.status {
			return e.expected(b, y, op)
		}
		return split{}
	}
	if n.fixed && m.status && !e.grpc {
		limit, _ := n.at(0)
		if limit.hi > 0 && limit.hi < 100 || limit.lo >= 600 && (op == token.EQL || op == token.NEQ) {
			return split{}
		}
	}
	return e.where(func(s int64) (bool, bool) {
		a, ok := m.at(s)
		b, ok2 := n.at(s)
		if !ok || !ok2 {
			return false, false
		}
		return a.compare(op, b)
	})
}

// expected evaluates a comparison with a number that is not known, such as the
// status that a setting expects: by the numbers that it may be, or else by its
// name. An element of a list that is walked over is each of its numbers in
// turn, so that the one that is looked for is found, if that ends the search.
func (e *eval) expected(b *ssa.BinOp, y ssa.Value, op token.Token) (equal split) {
	if op != token.EQL && op != token.NEQ {
		return split{}
	}
	if list := listOf(y); list != nil {
		if m := e.members(list); m.known {
			equal.no = e.all.Minus(m.some)
			if e.endsSearch(b) {
				equal.yes = m.every
			}
		} else {
			equal = e.byName(list)
		}
	} else if may := e.values(y); may.known {
		equal.no = e.all.Minus(may.some)
		if may.some.Len() == 1 {
			equal.yes = may.some
		}
	} else {
		equal = e.byName(y)
	}
	if op == token.NEQ {
		return equal.not()
	}
	return equal
}

// byName evaluates whether the status is one of those that a name speaks of,
// whose numbers are not known: those that are expected are successes, those that
// are retried failures.
func (e *eval) byName(v ssa.Value) split {
	name := dataflow.ValueName(v)
	failures := e.all.Minus(e.success)
	switch {
	case name == "":
		return split{}
	case retryWord.MatchString(name):
		e.guessed = true
		return split{no: e.success}
	case isExpected(name):
		e.guessed = true
		return split{no: failures}
	}
	return split{}
}

// isText evaluates whether a text of the response, such as "200 OK", is s.
func (e *eval) isText(x ssa.Value, s string) split {
	if !e.isStatusText(x) {
		return split{}
	}
	digits, _, _ := strings.Cut(s, " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !e.all.Has(n) {
		return split{}
	}
	is := codeset.Of(n)
	return split{is, e.all.Minus(is)}
}

// isStatusText reports whether x is the Status of a response of net/http.
func (e *eval) isStatusText(x ssa.Value) bool {
	if e.grpc || e.cert || !e.spend() {
		return false
	}
	defer e.done()
	switch x := x.(type) {
	case *ssa.UnOp:
		fa, ok := x.X.(*ssa.FieldAddr)
		if ok && dataflow.FieldOf(fa) == "Status" && dataflow.IsNamed(fa.X.Type(), "net/http", "Response") {
			e.leaf(x)
			return true
		}
	case *ssa.Phi:
		if e.active[x] {
			return true
		}
		e.active[x] = true
		defer delete(e.active, x)
		found := false
		for _, v := range x.Edges {
			if v == ssa.Value(x) || dataflow.IsConst(v) {
				continue
			}
			if !e.isStatusText(v) {
				return false
			}
			found = true
		}
		return found
	}
	return false
}

// predicate evaluates result index of retryable(status), retryable(resp) and
// their like: a search for the status, a function of the package, which is
// entered, or one of another package, by its fact.
func (e *eval) predicate(c *ssa.Call, index int) split {
	com := c.Common()
	if s, ok := e.library(c); ok {
		return s
	}
	if !dataflow.IsBool(resultType(com, index)) {
		return split{}
	}
	fn, args := e.callee(com)
	switch {
	case fn != nil:
	case dataflow.Static(com) == nil && !com.IsInvoke():
		return e.byDefault(c, index)
	default:
		return e.foreign(c, index)
	}
	leaves := len(e.leaves)
	if !e.enters(fn, args) {
		return split{}
	}
	sub := e.enter(fn, args)
	s := sub.results(index, sub.cond)
	if s.decides(e.all) {
		e.carriers(c, leaves)
	} else if e.depth == 0 {
		e.leaves = e.leaves[:leaves]
	}
	return s
}

// byDefault evaluates a call of a function value by the functions of the package
// that it may be: those that a field or a variable holds by default, or that the
// callers hand over. Others may be set, so that the result is less sure.
func (e *eval) byDefault(c *ssa.Call, index int) split {
	com := c.Common()
	fns := e.j.functions(e.defaults(com.Value))
	if len(fns) == 0 || e.depth >= evalDepth {
		return split{}
	}
	leaves := len(e.leaves)
	var m merger
	for _, fn := range fns {
		if !e.enters(fn, com.Args) {
			return split{}
		}
		sub := e.enter(fn, com.Args)
		m.add(e.all, sub.results(index, sub.cond))
	}
	s := m.split()
	if s.decides(e.all) {
		e.guessed = true
		e.carriers(c, leaves)
	}
	return s
}

// defaults returns what a variable, a field or a parameter holds by default.
func (e *eval) defaults(v ssa.Value) []ssa.Value {
	switch v := v.(type) {
	case *ssa.Parameter:
		return e.argsOf(v)
	case *ssa.Field:
		return e.stores(dataflow.FieldVar(v))
	case *ssa.UnOp:
		if g, ok := v.X.(*ssa.Global); ok {
			return []ssa.Value{e.initial(g)}
		}
		return e.stored(v.X)
	}
	return nil
}

// library evaluates calls of the standard library that ask for a status or for
// the kind of an error.
func (e *eval) library(c *ssa.Call) (s split, ok bool) {
	args := c.Common().Args
	switch pkg, name := dataflow.CalleePkg(c.Common()), dataflow.CalleeName(c.Common()); {
	case pkg == "slices" && name == "Contains" && len(args) == 2:
		return e.contains(args[0], args[1]), true
	case pkg == "strings" && name == "HasPrefix" && len(args) == 2:
		prefix, isConst := dataflow.ConstString(args[1])
		if !isConst || len(prefix) == 0 || !e.isStatusText(args[0]) {
			return split{}, true
		}
		return e.where(func(n int64) (bool, bool) {
			text := strconv.FormatInt(n, 10)
			return strings.HasPrefix(text, strings.TrimSpace(prefix)), len(strings.TrimSpace(prefix)) <= len(text)
		}), true
	case name == "Is" && len(args) == 2 && dataflow.IsError(args[0].Type()) && dataflow.IsError(args[1].Type()):
		return e.errorIs(args[0], args[1]), true
	}
	if err, t := dataflow.Sought(c.Common()); err != nil {
		return e.errorAs(err, t), true
	}
	return split{}, false
}

// foreign asks the fact of a predicate of another package.
func (e *eval) foreign(c *ssa.Call, index int) split {
	sum := e.j.known.Of(c.Common())
	if sum == nil || index > 0 || e.cert {
		return split{}
	}
	s := split{sum.Yes.And(e.all), sum.No.And(e.all)}
	e.guessed = e.guessed || sum.Guessed
	if s.decides(e.all) {
		e.carriers(c, len(e.leaves))
	}
	return s
}

// carriers notes what a predicate that looks at the status was given it by: its
// arguments or, without one that can carry it, the call itself. It takes the
// place of what was noted since, while the arguments were evaluated.
func (e *eval) carriers(c *ssa.Call, since int) {
	if e.depth > 0 {
		return
	}
	noted := e.leaves[since:len(e.leaves):len(e.leaves)]
	e.leaves = e.leaves[:since]
	for _, a := range c.Common().Args {
		if dataflow.IsError(a.Type()) || isResponse(a.Type()) {
			e.leaves = append(e.leaves, a)
		}
	}
	if e.leaves = append(e.leaves, noted...); len(e.leaves) == since {
		e.leaves = append(e.leaves, c)
	}
}
