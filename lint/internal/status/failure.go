package status

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// Failures returns the HTTP statuses for which fn certainly returns an error, and
// by no return that final names: one whose error tells a retry helper to stop.
func (j *Judge) Failures(fn *ssa.Function, final func(*ssa.Return) bool) (fails codeset.Set, guessed bool) {
	last := fn.Signature.Results().Len() - 1
	if last < 0 || len(fn.Blocks) == 0 || !dataflow.IsError(fn.Signature.Results().At(last).Type()) || !j.touches(fn) {
		return codeset.Set{}, false
	}
	e := j.eval(j.known.Scope(fn), overHTTP)
	fails = e.results(last, e.null).no
	if e.spent || e.success.Minus(fails).Empty() {
		return codeset.Set{}, false
	}
	for _, b := range fn.Blocks {
		if ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok && final(ret) {
			fails = fails.Minus(e.whole().in[b])
		}
	}
	return fails, e.guessed
}

// LooksAtStatus reports whether fn, or a function of the package that it calls,
// looks at the status of a response.
func (j *Judge) LooksAtStatus(fn *ssa.Function) bool { return j.touches(fn) }
