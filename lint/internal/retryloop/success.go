package retryloop

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
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
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		if cmp, ok := ret.Results[0].(*ssa.BinOp); ok && cmp.Op == token.EQL && dataflow.IsNil(cmp.Y) && failureOfCall(cmp.X) {
			return false, true
		}
	}
	return afterFailure(known.Scope(fn), 0)
}

// afterFailure reads off the branches of a function which bool it returns, as
// its result i, when a call in it has failed and when none has. A failure that
// ends the attempts may return what a success does; what counts is that one
// failure returns otherwise. One that hands its error on says nothing by the bool.
func afterFailure(s *fact.Scope, i int) (whenFailed, ok bool) {
	failures := map[*ssa.BasicBlock]bool{}
	for _, b := range s.Fn.Blocks {
		if to := failureBranch(s, b); to != nil && len(to.Preds) == 1 {
			failures[to] = true
		}
	}
	var failed, otherwise [2]bool // what is returned: false, true
	for ret := range dataflow.Instrs[*ssa.Return](s.Fn) {
		after := false
		for b := range failures {
			after = after || b.Dominates(ret.Block())
		}
		if after && slices.ContainsFunc(ret.Results, func(v ssa.Value) bool { return dataflow.IsError(v.Type()) && !dataflow.IsNil(v) }) {
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
		}
	}
	switch {
	case failed[0] && otherwise[1]:
		return false, true
	case failed[1] && otherwise[0] && !otherwise[1]:
		return true, true
	}
	return false, false
}

// failureBranch returns where b goes when a call has failed whose error it
// compares with nil, or nil.
func failureBranch(s *fact.Scope, b *ssa.BasicBlock) *ssa.BasicBlock {
	br := dataflow.IfOf(b)
	if br == nil {
		return nil
	}
	cmp, ok := br.Cond.(*ssa.BinOp)
	if !ok || !dataflow.IsNil(cmp.Y) || !dataflow.IsError(cmp.X.Type()) || cmp.Op != token.NEQ && cmp.Op != token.EQL {
		return nil
	}
	if !slices.ContainsFunc(s.Origins(cmp.X, nil), func(c *ssa.Call) bool { return !send.Ignored(c.Common()) }) {
		return nil
	}
	if cmp.Op == token.NEQ {
		return b.Succs[0]
	}
	return b.Succs[1]
}

// failureOfCall reports whether v is the error of a call that a retry may be
// about, and not of a parser or a reader.
// The error of a parameter or a field comes from elsewhere.
func failureOfCall(v ssa.Value) bool {
	if !dataflow.IsError(v.Type()) {
		return false
	}
	if e, ok := v.(*ssa.Extract); ok {
		v = e.Tuple
	}
	c, ok := v.(*ssa.Call)
	return ok && !send.Ignored(c.Common())
}
