package status

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// null evaluates whether an error is nil: an operation that yields a response
// has worked, a helper that turns the status into an error is entered, and
// anything else is taken to have worked. The assumption is about responses, so
// a connection that breaks is none of its business.
// With gRPC the error is the response, so its code decides.
func (e *eval) null(v ssa.Value) split {
	if !e.spend() {
		return split{}
	}
	defer e.done()
	if e.grpc && coded(e.j.known, v, 0) {
		return e.succeeded()
	}
	switch v := v.(type) {
	case *ssa.Const:
		return e.always(v.IsNil())
	case *ssa.Parameter:
		return e.nullParam(v)
	// A concrete error in an interface is an error, whatever it holds.
	case *ssa.MakeInterface:
		return e.always(false)
	case *ssa.ChangeInterface:
		return e.null(v.X)
	case *ssa.UnOp:
		return e.nullRead(v)
	case *ssa.Extract:
		if c, ok := v.Tuple.(*ssa.Call); ok {
			return e.nullResult(c, v.Index, v)
		}
	case *ssa.Call:
		return e.nullResult(v, 0, v)
	case *ssa.Phi:
		if k, ok := e.given(v); ok {
			return k.null
		}
		return e.merged(v, e.null)
	}
	return split{}
}

// nullParam evaluates an error that a function is given. Beside a response, it
// says that there was none; alone, it is what the response was made into.
func (e *eval) nullParam(p *ssa.Parameter) split {
	k := e.params[p].null
	switch {
	case e.cert:
		return e.always(false)
	case k != split{}:
		return k
	case e.grpc:
		return split{}
	case givenResponse(p.Parent()):
		return e.always(true)
	}
	return e.succeeded()
}

// nullRead evaluates a variable that holds an error.
func (e *eval) nullRead(u *ssa.UnOp) split {
	if u.Op != token.MUL {
		return split{}
	}
	e.flows++
	if x := cellValue(u); x != ssa.Value(u) {
		return e.null(x)
	}
	switch u.X.(type) {
	case *ssa.FieldAddr: // result.err
		if !e.grpc {
			return e.always(true)
		}
	case *ssa.Global: // a sentinel
		return e.always(false)
	}
	return split{}
}

// nullResult evaluates whether result index of a call is nil. A helper yields a
// failure only when the status has decided it: what fails for other reasons is
// taken to have worked.
// The marks of libraries, such as Permanent, are known by name because their
// packages are many.
func (e *eval) nullResult(c *ssa.Call, index int, v ssa.Value) split {
	com := c.Common()
	switch pkg, name := dataflow.CalleePkg(com), dataflow.CalleeName(com); {
	case pkg == "fmt" && name == "Errorf", pkg == "errors" && name == "New", name == "RetryableError":
		return e.always(false)
	// The helper around it looks at the mark and does not try again. That is
	// no success either, so neither branch is certain.
	case name == "Permanent" || name == "Unrecoverable": // a failure, but a final one
		return split{}
	}
	// The generated client returns the failure that is assumed.
	if e.grpc && isRPC(com) {
		return e.succeeded()
	}
	worked := e.always(true)
	if e.cert {
		return worked
	}
	// An error whose status is looked at is the response.
	if !e.grpc && e.j.asked(v, 0) {
		worked = e.succeeded()
	}
	fn, args := e.callee(com)
	if wrapped := dataflow.Wrapped(c); len(wrapped) > 0 && (fn != nil || wraps(com)) {
		return e.nullWrapped(com, fn, args, wrapped)
	}
	// A function of another package is known by its fact alone, as is one of this
	// package that lies too deep.
	if fn != nil && index == last(fn) && !e.tells(fn, args) {
		if sum := e.summary(com, fn); !sum.Fails.And(e.all).Empty() {
			return e.failing(sum.Fails.And(e.all))
		}
		return worked
	}
	if fn == nil || e.depth >= evalDepth {
		if sum := e.summary(com, fn); sum != nil && !sum.Fails.And(e.all).Empty() {
			return e.failing(sum.Fails.And(e.all))
		}
	}
	if fn == nil {
		if op := e.j.known.Handed(com); op != nil && e.enters(op, nil) {
			return e.failing(e.enter(op, nil).fails())
		}
		if fails := e.implemented(com); !fails.Empty() {
			return e.failing(fails)
		}
		return worked
	}
	if !e.enters(fn, args) {
		return worked
	}
	sub := e.enter(fn, args)
	return e.failing(sub.results(index, sub.null).no)
}

// tells reports whether something is known of what a function is given, so that
// what it does with it depends on the call. What it does otherwise is in its
// summary, which is made once.
func (e *eval) tells(fn *ssa.Function, args []ssa.Value) bool {
	if fn.Parent() != nil {
		return true // a literal, which sees the variables of another function
	}
	for _, p := range fn.Params {
		if _, ok := e.j.statusParam(p, e.assumption); ok {
			return true // which the summary takes for the status
		}
	}
	guessed := e.guessed
	defer func() { e.guessed = guessed }() // to ask decides nothing
	return slices.ContainsFunc(args, func(a ssa.Value) bool {
		if op, _ := e.handedFunc(a); op != nil {
			return true
		}
		k := e.know(a)
		return k.num != nil || k.truth != split{} || k.null != split{} || k.members.known
	})
}

// last is the index of a function's last result.
func last(fn *ssa.Function) int { return fn.Signature.Results().Len() - 1 }

// fails returns the statuses for which the function certainly returns an error.
func (e *eval) fails() codeset.Set {
	return e.results(e.sc.Fn.Signature.Results().Len()-1, e.null).no
}

// summary returns what is known of the function that a call leads to, without
// its arguments. fn is the one of the package, or nil.
func (e *eval) summary(c *ssa.CallCommon, fn *ssa.Function) *fact.Summary {
	if fn == nil {
		return e.j.known.Of(c)
	}
	sum := e.j.known.Local(fn)
	e.guessed = e.guessed || sum.Guessed && !sum.Fails.And(e.all).Empty()
	return sum
}

// implemented returns the statuses for which a method of an interface fails in each
// package that is known to have a kind of it which looks at one.
func (e *eval) implemented(c *ssa.CallCommon) (fails codeset.Set) {
	found := false
	for _, sum := range e.j.known.Implementers(c) {
		switch of := sum.Fails.And(e.all); {
		case of.Empty(): // a fake, or one that hands on
		case found:
			fails = fails.And(of)
		default:
			fails, found = of, true
		}
	}
	e.guessed = e.guessed || !fails.Empty()
	return fails
}

// nullWrapped evaluates whether what a call makes of errors is nil: of none it makes
// none. A function of the package that converts them is entered, since it may drop
// some.
func (e *eval) nullWrapped(c *ssa.CallCommon, fn *ssa.Function, args, wrapped []ssa.Value) split {
	switch name := dataflow.CalleeName(c); {
	case name == "Unwrap" || name == "Cause":
		return split{}
	case fn != nil && e.depth >= evalDepth:
		return split{}
	case fn != nil:
		sub := e.enter(fn, args)
		return sub.results(0, sub.null)
	}
	s := e.always(true)
	for _, w := range wrapped {
		o := e.null(w)
		s = split{s.yes.And(o.yes), s.no.Or(o.no)}
	}
	return s
}

// failing is the split of an error that a helper yields for some statuses. One
// that it yields for each success too has other reasons.
func (e *eval) failing(fails codeset.Set) split {
	if e.success.Minus(fails).Empty() {
		return e.always(true)
	}
	return split{e.all.Minus(fails), fails}
}

// resultType returns the type of result index of a call, which may be its only
// one.
func resultType(c *ssa.CallCommon, index int) types.Type {
	res := c.Signature().Results()
	if index >= res.Len() {
		return types.Typ[types.Invalid]
	}
	return res.At(index).Type()
}

// isRPC reports whether a call is one of a generated gRPC client: it takes
// grpc.CallOptions.
// The generated code has no other mark that is the same in all versions.
func isRPC(c *ssa.CallCommon) bool {
	sig := c.Signature()
	if !sig.Variadic() {
		return false
	}
	sl, ok := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice)
	return ok && dataflow.IsNamed(sl.Elem(), "google.golang.org/grpc", "CallOption")
}

// givenResponse reports whether fn is handed a response beside an error: then
// the error says that there was none, and is nil under the assumption.
// CheckRetry of retryablehttp is such a function.
func givenResponse(fn *ssa.Function) bool {
	return slices.ContainsFunc(fn.Params, func(p *ssa.Parameter) bool { return isResponse(p.Type()) })
}

// asked reports whether the status that the error v holds is looked at, here or
// in a function of the package that is given it.
func (j *Judge) asked(v ssa.Value, depth int) bool {
	if !dataflow.IsError(v.Type()) || depth > 2 {
		return false
	}
	for in := range dataflow.Refs[ssa.Instruction](v) {
		switch in := in.(type) {
		case *ssa.TypeAssert:
			if holdsStatus(in.AssertedType) {
				return true
			}
		case *ssa.Call:
			args := in.Common().Args
			if _, t := dataflow.Sought(in.Common()); t != nil && holdsStatus(t) {
				return true
			}
			fn := j.known.Body(in.Common())
			if fn == nil {
				// A predicate of another package, of which a fact knows what it says.
				if sum := j.known.Of(in.Common()); sum != nil && !sum.Yes.Or(sum.No).Empty() {
					return true
				}
				continue
			}
			for i, a := range args {
				if a == v && i < len(fn.Params) && j.asked(fn.Params[i], depth+1) {
					return true
				}
			}
		}
	}
	return false
}

// coded reports whether the gRPC code of the error v is looked at, here or in a
// function of the package that is given it: then v is the response of a server.
// Without that, the error may be a broken connection, of which the assumption
// says nothing.
func coded(known *fact.Table, v ssa.Value, depth int) bool {
	if !dataflow.IsError(v.Type()) || depth > 2 {
		return false
	}
	for c := range dataflow.Refs[*ssa.Call](v) {
		if dataflow.CalleePkg(c.Common()) == "google.golang.org/grpc/status" {
			return true
		}
		fn := known.Body(c.Common())
		if fn == nil {
			continue
		}
		for i, a := range c.Common().Args {
			if a == v && i < len(fn.Params) && coded(known, fn.Params[i], depth+1) {
				return true
			}
		}
	}
	return false
}
