package retryloop

import (
	"go/token"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/send"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// Test is one branch on the failure of an operation of the loop. Its two edges
// are what a region is made of: where a failure goes, and where a success does.
// A loop may have several, such as one for the error and one for the status.
type Test struct {
	If     *ssa.If
	Fail   int         // which successor a failure takes
	Ops    []*ssa.Call // the operations whose failure is tested
	Status bool        // the test looks at a status code, not at an error
	// Guessed tests compare a status with a setting, of which only the name is
	// known.
	Guessed bool
	Bool    bool // the test looks at a bool result, or at a lone one that may be nil
	Nil     bool // the test looks at a result beside an error
	Asked   bool // the test looks at what a function says that was handed over
}

// fail and ok are the edges that a failure and a success take.
func (t *Test) fail() dataflow.Edge { return dataflow.Edge{From: t.If.Block(), I: t.Fail} }

// ok is the edge that a success takes: the other one of the two.
func (t *Test) ok() dataflow.Edge { return dataflow.Edge{From: t.If.Block(), I: 1 - t.Fail} }

// lone reports whether t compares a result that may be nil and has no error
// beside it. That says nothing of a failure: nil may be a fair result.
func (t *Test) lone() bool {
	_, isComparison := t.If.Cond.(*ssa.BinOp)
	return t.Bool && isComparison
}

// failureWord marks predicates on errors: their yes is a failure that may pass.
var failureWord = regexp.MustCompile(`(?i)retr|tempor|transient|timeout|recoverable|^Is|^As$|conn.*(err|refused|reset)`)

// tests returns the failure tests of l. Those without Ops test something that
// no retry is about, such as a read of a body: their failure is no success.
func (f *finder) tests(l *dataflow.Loop) []*Test {
	var found []*Test
	for _, b := range f.Fn.Blocks {
		if !l.Blocks[b] {
			continue
		}
		if i := dataflow.IfOf(b); i != nil {
			if t := f.test(i, l); t != nil {
				found = append(found, t)
			}
		}
	}
	return found
}

// test recognizes err != nil, errors.Is(err, x), retryable(err) and comparisons
// of status codes; nil for any other branch. A negation swaps the edges.
// It takes the failure to be the first successor until a case says otherwise.
func (f *finder) test(i *ssa.If, l *dataflow.Loop) *Test {
	cond, fail := i.Cond, 0
	for {
		n, ok := cond.(*ssa.UnOp)
		if !ok || n.Op != token.NOT {
			break
		}
		cond, fail = n.X, 1-fail
	}
	t := &Test{If: i, Fail: fail}
	switch c := cond.(type) {
	case *ssa.BinOp:
		return f.compareTest(c, t, l)
	case *ssa.Call:
		return f.callTest(c, t, l)
	case *ssa.Extract: // if e, ok := err.(T); ok
		if accepted := f.acceptTest(c, t, l); accepted != nil {
			return accepted
		}
		if asked, ok := c.Tuple.(*ssa.Call); ok { // errors.AsType
			if err, _ := dataflow.Sought(asked.Common()); err != nil {
				t.Ops = f.opsOf(err, l)
				return t
			}
		}
		a, ok := c.Tuple.(*ssa.TypeAssert)
		if !ok || !implementsError(a.X) {
			if t := f.statusTest(c, t, l); t != nil || ok {
				return t
			}
			return f.askedTest(c, t, l)
		}
		t.Ops = f.opsOf(a.X, l)
		return t
	case *ssa.Phi:
		if st := f.statusTest(c, t, l); st != nil {
			return st
		}
		return f.mergedTest(c, t, l)
	}
	return f.statusTest(cond, t, l)
}

// compareTest recognizes a comparison of an error with nil or with another
// error, of a result with nil, of a status or a code with a constant. t takes
// the failure to be what the branch is true for.
// A comparison with a certain error proves a failure only when it is equal.
func (f *finder) compareTest(c *ssa.BinOp, t *Test, l *dataflow.Loop) *Test {
	x, y := c.X, c.Y
	if dataflow.IsNil(x) {
		x, y = y, x
	}
	if dataflow.IsNil(y) || implementsError(x) && implementsError(y) {
		isEqual := c.Op == token.EQL
		switch {
		case !isEqual && c.Op != token.NEQ:
			return nil
		case !implementsError(x):
			return f.nilTest(x, c.Op, t, l)
		case dataflow.IsNil(y) && isEqual:
			t.Fail = 1 - t.Fail
		case !dataflow.IsNil(y) && !isEqual: // err != io.EOF may be a success
			return nil
		}
		t.Ops = f.opsOf(x, l)
		return t
	}
	return f.statusTest(c, t, l)
}

// statusTest recognizes a condition that separates success from failure by a
// status or a code, however it is put: a comparison, a helper, a list, a bool in
// which several are merged. t takes the failure to be what the branch is true
// for.
func (f *finder) statusTest(cond ssa.Value, t *Test, l *dataflow.Loop) *Test {
	s := f.pkg.Judge.Test(f.Scope, cond)
	if s == nil {
		return nil
	}
	if s.Fail == 1 {
		t.Fail = 1 - t.Fail
	}
	t.Status, t.Guessed = true, s.Guessed
	for _, v := range s.Of {
		if c, ok := v.(*ssa.Call); ok && l.Contains(c) && !implementsError(v) && !status.IsStatus(v) && !status.IsCode(v) {
			t.Ops = appendNew(t.Ops, []*ssa.Call{c}) // an operation that looks at its own response
			continue
		}
		t.Ops = appendNew(t.Ops, status.Sources(f.Func, v, l))
	}
	return t
}

// nilTest recognizes resp == nil: beside an error it is a failure as well, and
// where there is no error it may be one. Only the first result of several is
// looked at then, since a second one is a detail of it.
func (f *finder) nilTest(x ssa.Value, op token.Token, t *Test, l *dataflow.Loop) *Test {
	e, ok := x.(*ssa.Extract)
	if !ok {
		return nil
	}
	c, ok := e.Tuple.(*ssa.Call)
	if !ok || !l.Contains(c) || status.Reads(c.Common()) || send.Ignored(c.Common()) || delay.WaitOf(f.Scope, c, l) != nil {
		return nil
	}
	t.Bool = true
	for v := range c.Common().Signature().Results().Variables() {
		if dataflow.IsError(v.Type()) {
			t.Bool, t.Nil = false, true
		}
	}
	if t.Bool && e.Index > 0 {
		return nil
	}
	if op == token.NEQ {
		t.Fail = 1 - t.Fail
	}
	t.Ops = []*ssa.Call{c}
	return t
}

// callTest recognizes a predicate on an error or on a response, and an operation
// that reports success as a bool.
// The name of a predicate counts only when it is given an error of the loop.
func (f *finder) callTest(c *ssa.Call, t *Test, l *dataflow.Loop) *Test {
	if failureWord.MatchString(dataflow.CalleeName(c.Common())) {
		for _, a := range c.Common().Args {
			if implementsError(a) {
				t.Ops = append(t.Ops, f.opsOf(a, l)...)
			}
		}
		if len(t.Ops) > 0 {
			return t
		}
	}
	if st := f.statusTest(c, t, l); st != nil {
		return st
	}
	return f.boolTest(c, t, l)
}

// boolTest recognizes if c.send() { return }: an operation that reports success
// as a bool. Its name and its boundary say so, or its body, which returns
// another bool after a failure. Calls of many parameters are left alone: their bool
// is rarely about success.
func (f *finder) boolTest(c *ssa.Call, t *Test, l *dataflow.Loop) *Test {
	if !l.Contains(c) || c.Common().Signature().Params().Len() > 6 {
		return nil
	}
	named := boolOp.MatchString(dataflow.CalleeName(c.Common())) && send.BoundaryOf(f.Known, c.Common()) == send.Remote
	whenFailed, proved := reportsSuccess(f.Known, c.Common())
	if !named && !proved {
		return f.askedTest(c, t, l)
	}
	if !whenFailed {
		t.Fail = 1 - t.Fail
	}
	t.Ops, t.Bool = []*ssa.Call{c}, !proved
	return t
}

// boolOp marks functions that do something and may fail at it, by their name.
// The list is short on purpose: a bool says far more often "there is none" than
// "it failed".
var boolOp = regexp.MustCompile(`(?i)^(try)?(send|post|publish|push|upload|deliver|submit|connect|reconnect|dial|fetch|download|call|do|write|register|notify)`)

// implementsError reports whether v is an error.
func implementsError(v ssa.Value) bool { return dataflow.IsError(v.Type()) }

// opsOf returns the operations of l that may have produced the error v. What
// only computes is none, and neither is a wait, whose error is a context's end.
func (f *finder) opsOf(v ssa.Value, l *dataflow.Loop) []*ssa.Call {
	var ops []*ssa.Call
	for _, c := range f.Origins(v, l) {
		if !send.Ignored(c.Common()) && delay.WaitOf(f.Scope, c, l) == nil {
			ops = append(ops, c)
		}
	}
	return ops
}
