package retryloop

import (
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// follow keeps the tests after whose failure the same operation is attempted
// again, with their operations, and finds out whether a success ends the
// region. It returns the blocks that each failure and each success leads to.
// It sets Tests, Ops and Pure of r.
func (r *Region) follow(tests []*Test) (onFailure, onSuccess []map[*ssa.BasicBlock]bool) {
	l := r.Loop
	failing := map[dataflow.Edge]bool{}
	for _, t := range tests {
		failing[t.fail()] = true
	}
	for _, e := range r.notAccepted(tests) {
		failing[e] = true
	}
	notFailing := func(e dataflow.Edge) bool { return failing[e] }

	// A test that only a failure leads to looks at it once more: its other edge
	// is no success.
	first, _ := l.WalkTurn(notFailing)

	var goingOn []map[*ssa.BasicBlock]bool // what successes lead to that do not end the loop
	var ending []*Test                     // whose success does
	for _, t := range tests {
		if len(t.Ops) == 0 {
			continue
		}
		failBlocks, again := l.Walk(t.fail().To(), nil)
		if !again || !dataflow.SameOperation(r.f.Func, t.Ops, t.ok(), l) {
			continue
		}
		okBlocks, goesOn := r.afterSuccess(t, notFailing)
		r.Tests = append(r.Tests, t)
		r.Ops = appendNew(r.Ops, t.Ops)
		onFailure = append(onFailure, failBlocks)
		if !first[t.If.Block()] || carried(l, t) {
			continue
		}
		if goesOn && !onlyPredicate(t) {
			goingOn = append(goingOn, okBlocks)
			r.Refuses = r.Refuses || r.refuses(t, okBlocks)
		} else if !goesOn {
			ending = append(ending, t)
		}
		onSuccess = append(onSuccess, okBlocks)
	}
	// Of several operations in a turn, the success of the last one counts: what
	// leads past it has not come to an end either.
	for _, blocks := range goingOn {
		if !slices.ContainsFunc(ending, func(t *Test) bool { return blocks[t.If.Block()] }) {
			r.Pure = false
		}
	}
	return onFailure, onSuccess
}

// afterSuccess returns where a success of t leads to, and whether another attempt
// follows it. The graph may go on where the program does not: a flag ends it, or
// the status that a success has.
func (r *Region) afterSuccess(t *Test, notFailing func(dataflow.Edge) bool) (blocks map[*ssa.BasicBlock]bool, goesOn bool) {
	blocks, goesOn = r.Loop.Walk(t.ok().To(), notFailing)
	switch {
	case !goesOn:
	case r.Loop.EndsByFlag(t.ok(), notFailing, append(slices.Clip(r.Ops), t.Ops...)):
		goesOn = false
	case t.Status && r.Loop.Header != nil:
		goesOn = !r.f.pkg.Judge.Ends(r.f.Scope, r.Loop, t.Ops)
	}
	return blocks, goesOn
}

// unasked leaves out what a function says that was handed over, where failures
// lead to another attempt.
func unasked(tests []*Test, l *dataflow.Loop) []*Test {
	for _, t := range tests {
		if t.Asked || len(t.Ops) == 0 {
			continue
		}
		if _, again := l.Walk(t.fail().To(), nil); again {
			return slices.DeleteFunc(tests, func(t *Test) bool { return t.Asked })
		}
	}
	return tests
}

// besideErrors leaves out the tests of a result beside an error, unless the
// error leads to another attempt too: otherwise they wait for the result. A
// lookup that yields neither error nor value says "not yet", and a loop around
// it polls.
// Such a loop waits for a state, and its interval may well be fixed.
func besideErrors(tests []*Test, l *dataflow.Loop) []*Test {
	var retried []*ssa.Call
	for _, t := range tests {
		if _, again := l.Walk(t.fail().To(), nil); again && !t.Nil {
			retried = append(retried, t.Ops...)
		}
	}
	return slices.DeleteFunc(tests, func(t *Test) bool {
		return t.Nil && !slices.ContainsFunc(t.Ops, func(c *ssa.Call) bool { return slices.Contains(retried, c) })
	})
}

// onlyBy reports whether nothing leads to another attempt but errors of a name.
// Where they say that another one is in the way, the loop waits for a lock, or
// takes the new state of what it failed to change.
func onlyBy(word *regexp.Regexp, tests []*Test, l *dataflow.Loop) bool {
	named := map[dataflow.Edge]bool{}
	for _, t := range tests {
		if word.MatchString(sentinel(t.If.Cond)) {
			named[t.fail()] = true
		}
	}
	if len(named) == 0 {
		return false
	}
	return !slices.ContainsFunc(tests, func(t *Test) bool {
		if named[t.fail()] {
			return false
		}
		_, again := l.Walk(t.fail().To(), func(e dataflow.Edge) bool { return named[e] })
		return again
	})
}

// sentinel names the error that a condition looks for: the predicate that is
// asked, or the error that the one at hand is compared with.
func sentinel(cond ssa.Value) string {
	switch c := cond.(type) {
	case *ssa.UnOp:
		return sentinel(c.X)
	case *ssa.BinOp:
		if dataflow.IsNil(c.Y) {
			return ""
		}
		return dataflow.ValueName(c.Y)
	case *ssa.Call:
		if args := c.Common().Args; dataflow.CalleeName(c.Common()) == "Is" && len(args) == 2 && implementsError(args[1]) {
			return dataflow.ValueName(args[1])
		}
		return dataflow.CalleeName(c.Common())
	case *ssa.Extract:
		if a, ok := c.Tuple.(*ssa.TypeAssert); ok {
			return dataflow.TypeName(a.AssertedType)
		}
	}
	return ""
}

// carried reports whether t looks at the failure of the turn before: no
// operation of this turn has run yet, as in for err := op(); err != nil; err =
// op() {}. Its other edge is the end of the loop, and says nothing of a turn.
// Read as a success, that edge would make every such loop look as if it went on.
func carried(l *dataflow.Loop, t *Test) bool {
	intoOp := func(e dataflow.Edge) bool {
		return slices.ContainsFunc(t.Ops, func(c *ssa.Call) bool { return c.Block() == e.To() })
	}
	if slices.ContainsFunc(t.Ops, func(c *ssa.Call) bool { return c.Block() == l.Header }) {
		return false
	}
	if t.If.Block() == l.Header {
		return true
	}
	without, _ := l.WalkTurn(intoOp)
	return without[t.If.Block()]
}

// onlyPredicate reports whether t is a predicate on an error: its other edge is
// no success.
// An error that is not temporary is still an error.
func onlyPredicate(t *Test) bool {
	c := t.If.Cond
	if n, ok := c.(*ssa.UnOp); ok {
		c = n.X
	}
	if _, isCall := c.(*ssa.Call); isCall {
		return true
	}
	b, ok := c.(*ssa.BinOp)
	return ok && !t.Status && !dataflow.IsNil(b.X) && !dataflow.IsNil(b.Y)
}
