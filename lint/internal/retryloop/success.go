package retryloop

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// questionWord marks functions that ask for a state rather than do something.
// A loop around a question waits for a state.
var questionWord = regexp.MustCompile(`(?i)^(is|has|have|can|should|check|exists?|alive|healthy|valid|needs|was|are|does|in|ok|test|probe|want|support)`)

// reportsSuccess reports whether c calls a function of the package that does
// something and says by its bool result whether that failed, and by which: it
// returns whether an error was nil, or another bool after a failure than
// otherwise. A question about a state says that too, so that names which ask are
// left out.
func reportsSuccess(known *fact.Table, c *ssa.CallCommon) (whenFailed, ok bool) {
	fn := known.Body(c)
	if fn == nil || questionWord.MatchString(fn.Name()) || awaitWord.MatchString(fn.Name()) {
		return false, false
	}
	res := fn.Signature.Results()
	if res.Len() != 1 || !types.Identical(res.At(0).Type(), types.Typ[types.Bool]) {
		return false, false
	}
	whenFailed, _, ok = afterFailure(known.Scope(fn), 0)
	return whenFailed, ok
}

// afterFailure reads off the branches of a function which bool it returns, as
// its result i, when a call in it has failed and when none has. A failure that
// ends the attempts may return what a success does; what counts is that one
// failure returns otherwise. One that hands its error on says nothing by the bool.
// Plain functions return one and the same constant without a failure: no state
// decides.
func afterFailure(s *fact.Scope, i int) (whenFailed, plain, ok bool) {
	failures := map[*ssa.BasicBlock]bool{}
	for _, b := range s.Fn.Blocks {
		if to := failureBranch(s, b); to != nil && len(to.Preds) == 1 {
			failures[to] = true
		}
	}
	var failed, otherwise [2]bool // what is returned: false, true
	computed := false
	for ret := range dataflow.Instrs[*ssa.Return](s.Fn) {
		after := false
		for b := range failures {
			after = after || b.Dominates(ret.Block())
		}
		if after && slices.ContainsFunc(ret.Results, func(v ssa.Value) bool { return dataflow.IsError(v.Type()) && !dataflow.IsNil(v) }) {
			continue
		}
		if err, whenFailed := errorCheck(ret.Results[i]); err != nil && attempts(s.Origins(err, nil)) {
			failed[whenFailed^1], otherwise[whenFailed] = true, true
			continue
		}
		v, known := dataflow.ConstBool(ret.Results[i])
		switch {
		case after && known && v:
			failed[1] = true
		case after && known:
			failed[0] = true
		case !after && known && !v:
			otherwise[0] = true
		case !after: // true, or computed
			otherwise[1] = true
			computed = computed || !known
		}
	}
	switch {
	case failed[0] && otherwise[1]:
		return false, !computed && !otherwise[0], true
	case failed[1] && otherwise[0] && !otherwise[1]:
		return true, true, true
	}
	return false, false, false
}

// failureBranch returns where b goes when a call has failed whose error it
// compares with nil, or nil.
func failureBranch(s *fact.Scope, b *ssa.BasicBlock) *ssa.BasicBlock {
	br := dataflow.IfOf(b)
	if br == nil {
		return nil
	}
	err, failed := errorCheck(br.Cond)
	if err == nil || !attempts(s.Origins(err, nil)) {
		return nil
	}
	return b.Succs[failed]
}

// errorCheck reads a condition that says whether there is an error: it returns
// the error, nil for any other condition, and which successor of its branch one
// leads to.
func errorCheck(cond ssa.Value) (err ssa.Value, failed int) {
	cmp, ok := cond.(*ssa.BinOp)
	if !ok || cmp.Op != token.EQL && cmp.Op != token.NEQ {
		return nil, 0
	}
	if cmp.Op == token.EQL {
		failed = 1
	}
	switch x, y := cmp.X, cmp.Y; {
	case implementsError(x) && dataflow.IsNil(y):
		return x, failed
	case implementsError(y) && dataflow.IsNil(x):
		return y, failed
	}
	return nil, 0
}
