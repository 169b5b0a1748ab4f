package retryloop

import (
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// questionWord marks functions that ask for a state rather than do something.
// A loop around a question waits for a state.
var questionWord = regexp.MustCompile(`(?i)^(is|has|have|can|should|check|exists?|alive|healthy|valid|needs|was|are|does|in|ok|test|probe|want|support)`)

// reportsSuccess reports whether c calls a function of the package that does
// something and says by its bool result whether that failed: somewhere it
// returns whether an error was nil. A question about a state says that too, so
// that names which ask are left out.
func reportsSuccess(known *fact.Table, c *ssa.CallCommon) bool {
	fn := known.Body(c)
	if fn == nil || questionWord.MatchString(fn.Name()) || awaitWord.MatchString(fn.Name()) {
		return false
	}
	res := fn.Signature.Results()
	if res.Len() != 1 || !types.Identical(res.At(0).Type(), types.Typ[types.Bool]) {
		return false
	}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		if cmp, ok := ret.Results[0].(*ssa.BinOp); ok && cmp.Op == token.EQL && dataflow.IsNil(cmp.Y) && failureOfCall(cmp.X) {
			return true
		}
	}
	return false
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
