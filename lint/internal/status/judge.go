// Package status says what code does after a response of a given HTTP status,
// or an error of a given gRPC code: it follows the code under the assumption
// that every response has the same status, for all statuses at once, and
// believes only what is certain.
package status

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Judge says what the functions of a package do with a status. It is made once
// for a package, remembers what it has found, and is not safe for concurrent
// use.
type Judge struct {
	known *fact.Table
	leads map[*ssa.Function][]*ssa.Function // what callees has found
	looks map[*ssa.Function]bool            // looks at a status itself
	memo  map[*ssa.Function]bool            // looks at one, or leads to a function that does
	uses  map[*ssa.Global]*use              // of the package's variables; nil until it is asked for
	grown map[*types.Var]bool               // fields that hold a map which gets keys
	evals map[evalKey]*eval
	weary map[evalKey]int // how often an evaluation gave up
}

// patience is how often an evaluation of a function may give up until it is not
// begun any more: it takes long each time.
const patience = 3

type evalKey struct {
	fn *ssa.Function
	a  *assumption
}

// New returns the judge of the functions in a table.
func New(known *fact.Table) *Judge {
	return &Judge{known: known, leads: map[*ssa.Function][]*ssa.Function{}, looks: map[*ssa.Function]bool{}, memo: map[*ssa.Function]bool{}, evals: map[evalKey]*eval{}, weary: map[evalKey]int{}}
}

// eval returns the evaluation of a function by itself, ready for a question. One
// that gave up on the question before starts anew, since what it remembers is not
// all.
func (j *Judge) eval(sc *fact.Scope, a *assumption) *eval {
	key := evalKey{sc.Fn, a}
	e := j.evals[key]
	if e != nil && e.spent {
		j.weary[key]++
	}
	if e == nil || e.spent || e.nest > 0 { // nested: what it asks of others leads back to it
		e = j.newEval(sc, a)
		j.evals[key] = e
	}
	e.turn, e.leaves, e.guessed, e.steps, e.nest = nil, nil, false, evalSteps, 0
	if j.weary[key] >= patience {
		e.steps = 0
	}
	return e
}

// Outcome returns the HTTP statuses and gRPC codes for which a function certainly
// returns an error, and those for which its bool result is certainly true or
// false. They become facts, by which callers in other packages judge their own
// branches. What does not depend on the status is left out.
func (j *Judge) Outcome(sc *fact.Scope) (fails, yes, no codeset.Set, guessed bool) {
	res := sc.Fn.Signature.Results()
	last := res.Len() - 1
	fallible := dataflow.IsError(res.At(last).Type())
	if !answersBool(sc.Fn) && !fallible || !j.touches(sc.Fn) {
		return fails, yes, no, false
	}
	for _, a := range []*assumption{overHTTP, overGRPC} {
		e := j.eval(sc, a)
		if fallible {
			if s := e.results(last, e.null); !a.success.Minus(s.no).Empty() && !e.spent {
				fails = fails.Or(s.no)
			}
		}
		if answersBool(sc.Fn) {
			if s := e.results(0, e.cond); s.decides(a.all) && !e.spent {
				yes, no = yes.Or(s.yes), no.Or(s.no)
			}
		}
		guessed = guessed || e.guessed
	}
	return fails, yes, no, guessed
}

// Status returns which result of a function is the status of a response, from 1;
// 0 when none is.
func (j *Judge) Status(sc *fact.Scope) int {
	for i := range sc.Fn.Signature.Results().Len() {
		if dataflow.IsInteger(sc.Fn.Signature.Results().At(i).Type()) && j.touches(sc.Fn) && j.eval(sc, overHTTP).returnsStatus(i) {
			return i + 1
		}
	}
	return 0
}

// Yes returns the responses for which the predicate fn certainly returns true;
// none when it does not look at a status. guessed says that a setting decides, of
// which only the name or the default is known.
func (j *Judge) Yes(fn *ssa.Function, grpc bool) (yes codeset.Set, guessed bool) {
	if !answersBool(fn) || !j.touches(fn) {
		return codeset.Set{}, false
	}
	e := j.eval(j.known.Scope(fn), over(grpc))
	if s := e.results(0, e.cond); s.decides(e.all) && !e.spent {
		return s.yes, e.guessed
	}
	return codeset.Set{}, false
}

// answersBool reports whether the first result of a function is a bool.
func answersBool(fn *ssa.Function) bool {
	res := fn.Signature.Results()
	return res.Len() > 0 && dataflow.IsBool(res.At(0).Type())
}

// YesToCertificate reports whether the predicate fn certainly returns true for
// an error of crypto/x509 that it asks for.
// A predicate that returns true for any error at all does not count: it has not
// asked.
func (j *Judge) YesToCertificate(fn *ssa.Function) bool {
	if !answersBool(fn) {
		return false
	}
	e := j.newEval(j.known.Scope(fn), ofCertificate)
	return e.results(0, e.cond).yes == e.all && e.asked
}

// Retried returns the failures after which another turn of l may come to one of
// ops, if a success is not treated alike: it does not come to them again, or
// has a way out of the loop that the failure has not, or it does not take one of
// the edges that failures takes.
//
// Every open branch is followed both ways.
func (j *Judge) Retried(sc *fact.Scope, l *dataflow.Loop, ops []*ssa.Call, failures []dataflow.Edge, grpc bool) (retried codeset.Set, guessed bool) {
	e := j.eval(sc, over(grpc))
	again := e.again(l, ops)
	if e.spent {
		return codeset.Set{}, false
	}
	if !e.success.Minus(again).Empty() {
		return again.Minus(e.success), e.guessed
	}
	for edge, taken := range e.turn.out {
		if !l.Blocks[edge.To()] && !taken.And(e.success).Empty() {
			retried = retried.Or(again.Minus(taken))
		}
	}
	for _, edge := range failures {
		if taken := e.turn.out[edge]; !e.success.Minus(taken).Empty() {
			retried = retried.Or(again.And(taken))
		}
	}
	return retried.Minus(e.success), e.guessed
}

// Recursed returns the failures with which a function calls itself, or what leads
// back to it, if some success does not come to that call.
func (j *Judge) Recursed(sc *fact.Scope, self *ssa.Call, grpc bool) (retried codeset.Set, guessed bool) {
	e := j.eval(sc, over(grpc))
	again := e.whole().in[self.Block()]
	if e.spent || e.success.Minus(again).Empty() {
		return codeset.Set{}, false
	}
	return again.Minus(e.success), e.fn.guessed
}

// Restarted returns the failures of an operation that l begins again and again, after
// which it begins it again: for such a response the operation certainly fails.
// A success does not end the loop either, so that no branch tells the two apart.
func (j *Judge) Restarted(sc *fact.Scope, l *dataflow.Loop, op *ssa.Call, grpc bool) (retried codeset.Set, guessed bool) {
	res := op.Common().Signature().Results()
	last := res.Len() - 1
	if last < 0 || !dataflow.IsError(res.At(last).Type()) {
		return codeset.Set{}, false
	}
	e := j.eval(sc, over(grpc))
	again := e.again(l, []*ssa.Call{op})
	fails := e.nullResult(op, last, resultOf(op, last)).no
	if e.spent || e.success.Minus(fails).Empty() {
		return codeset.Set{}, false
	}
	return again.And(fails).Minus(e.success), e.guessed
}

// resultOf returns the value that result index of a call is; the call itself when it
// has one result, or the one that is asked for is not used.
func resultOf(c *ssa.Call, index int) ssa.Value {
	for x := range dataflow.Refs[*ssa.Extract](c) {
		if x.Index == index {
			return x
		}
	}
	return c
}

// Ends reports whether l ends after some success, and comes to none of ops again.
func (j *Judge) Ends(sc *fact.Scope, l *dataflow.Loop, ops []*ssa.Call) bool {
	e := j.eval(sc, overHTTP)
	return !e.success.Minus(e.again(l, ops)).Empty() && !e.spent
}

// An Open branch cannot be judged for some statuses: it looks at something other
// than the status, such as the body.
type Open struct {
	If *ssa.If
	Of codeset.Set // with which statuses it is come to, and left either way
}

// Undecided returns the branches that cannot be judged between one of some
// responses and the next turn of l: they may end the loop by something else.
// They cost a finding its high confidence, for the statuses that come to them.
func (j *Judge) Undecided(sc *fact.Scope, l *dataflow.Loop, of codeset.Set, grpc bool) (branches []Open) {
	e := j.eval(sc, over(grpc))
	f := newFlow(l)
	e.inTurn(f, e.all)
	for _, b := range sc.Fn.Blocks {
		br := dataflow.IfOf(b)
		if br == nil || f.in[b].And(of).Empty() {
			continue
		}
		c := e.cond(br.Cond)
		if open := f.in[b].And(of).Minus(c.yes).Minus(c.no); !open.Empty() {
			branches = append(branches, Open{br, open})
		}
	}
	return branches
}

// A Test is a branch that separates successes from failures by the status.
type Test struct {
	Fail int // which successor the failures take
	// Of are the values that carry the status: a status, a response or an error.
	Of []ssa.Value
	// Guessed says that the name of a setting decided, not its value.
	Guessed bool
}

// Test judges a condition that looks at a status, or returns nil. An edge that
// no failure takes is that of success, and else the one that fewer successes
// take is that of failure: "not 404" may be a success or another failure, but
// 404 is one.
func (j *Judge) Test(sc *fact.Scope, cond ssa.Value) *Test {
	for _, a := range []*assumption{overHTTP, overGRPC} {
		e := j.eval(sc, a)
		c := e.cond(cond)
		if len(e.leaves) == 0 || e.spent {
			continue
		}
		takes := [2]codeset.Set{a.all.Minus(c.no), a.all.Minus(c.yes)}
		if fail := failing(a, takes); fail >= 0 {
			return &Test{Fail: fail, Of: e.leaves, Guessed: e.guessed}
		}
	}
	return nil
}

// failing returns which of two edges is that of failure, or -1. takes are the
// statuses that may take them.
func failing(a *assumption, takes [2]codeset.Set) int {
	var successes, failures [2]int
	for i, t := range takes {
		successes[i] = t.And(a.success).Len()
		failures[i] = t.Minus(a.success).Len()
	}
	for i := range takes {
		if successes[i] > 0 && failures[i] == 0 && failures[1-i] > 0 {
			return 1 - i
		}
	}
	for i := range takes {
		if failures[i] > 0 && successes[i] < successes[1-i] {
			return i
		}
	}
	return -1
}

// touches reports whether fn, or a function of this package that it calls, looks
// at a status code. To follow a function is dear, so that those which cannot
// depend on one are left out. Of one that lies deeper it is known what it makes of
// a status.
func (j *Judge) touches(fn *ssa.Function) bool {
	t, ok := j.memo[fn]
	if !ok {
		t = dataflow.Within(fn, touchCalls, j.callees, j.looksItself) || slices.ContainsFunc(j.callees(fn), func(g *ssa.Function) bool {
			return tells(j.known.Local(g))
		})
		j.memo[fn] = t
	}
	return t
}

// tells reports whether something is known of what a function makes of a status.
func tells(sum *fact.Summary) bool {
	return !sum.Fails.Or(sum.Yes).Or(sum.No).Empty() || sum.Status > 0
}

// callees returns the functions of the package that fn calls, has carried out by
// others, or reaches through an interface.
func (j *Judge) callees(fn *ssa.Function) []*ssa.Function {
	fns, ok := j.leads[fn]
	if ok {
		return fns
	}
	for c := range dataflow.Instrs[*ssa.Call](fn) {
		for _, g := range []*ssa.Function{j.known.Body(c.Common()), j.known.Implementation(c.Common()), j.known.Handed(c.Common())} {
			if g != nil {
				fns = append(fns, g)
			}
		}
	}
	j.leads[fn] = fns
	return fns
}

// touchCalls is how many calls lead from a function to what it touches.
const touchCalls = 3

// looksItself reports whether the code of fn looks at a status, or calls what is
// known to look at one.
func (j *Judge) looksItself(fn *ssa.Function) bool {
	found, ok := j.looks[fn]
	if ok {
		return found
	}
	for i, p := range fn.Params {
		found = found || i < 6 && dataflow.IsInteger(p.Type()) && statusName.MatchString(p.Name())
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		if found {
			break
		}
		switch in := in.(type) {
		case *ssa.Call:
			found = IsStatus(in) || isCode(in) || isRPC(in.Common()) || j.factTouches(in.Common())
		case ssa.Value:
			found = IsStatus(in) || j.isText(in)
		}
	}
	j.looks[fn] = found
	return found
}

// factTouches reports whether a function of another package looks at a status, by
// its fact.
func (j *Judge) factTouches(c *ssa.CallCommon) bool {
	if j.known.Body(c) != nil {
		return false
	}
	sum := j.known.Of(c)
	return sum != nil && tells(sum)
}

// isText reports whether v is the status of a response as text.
func (j *Judge) isText(v ssa.Value) bool {
	fa, ok := v.(*ssa.FieldAddr)
	return ok && dataflow.FieldOf(fa) == "Status" && dataflow.IsNamed(fa.X.Type(), "net/http", "Response")
}
