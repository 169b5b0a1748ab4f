package nonretryable

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// handed judges functions that are predicates by the place that they are handed
// to: client.CheckRetry = policy, retry.RetryIf(func...). Such a function has no
// name, or one that says nothing; the name of the field or the option says what
// it decides. Each is judged once, however often it is handed on, and not at all
// when its own name has had it judged.
func handed(p *rule.Pass) {
	seen := map[*ssa.Function]bool{}
	predicate := func(v ssa.Value, place string) {
		if !saysRetry(place) {
			return
		}
		fn := handedFunction(p, v)
		if fn != nil && !seen[fn] && isAsked(fn) {
			seen[fn] = true
			judge(p, fn, place)
		}
	}
	for _, fn := range p.Funcs {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			switch in := in.(type) {
			case *ssa.Store:
				predicate(in.Val, dataflow.FieldOf(in.Addr))
			case *ssa.Call:
				for i, a := range in.Common().Args {
					if !p.CallsAgain(in, i) {
						predicate(a, dataflow.CalleeName(in.Common()))
					}
				}
			}
		}
	}
}

// isAsked reports whether a function is asked about a response: it is given one, its
// status or an error, as a method of it too, or as a literal that captures it. One
// that is given none of these makes the response itself, and its bool says how that
// went.
func isAsked(fn *ssa.Function) bool {
	tells := func(t types.Type) bool { return dataflow.IsInteger(t) || status.Carries(t) }
	for _, v := range fn.FreeVars { // the address of a variable, often
		if t := v.Type(); tells(t) || isPointer(t) && tells(t.Underlying().(*types.Pointer).Elem()) {
			return true
		}
	}
	return slices.ContainsFunc(fn.Params, func(v *ssa.Parameter) bool { return tells(v.Type()) })
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// handedFunction returns the function of the package behind v, or nil.
// A declared function with a telling name is judged by that name, in predicates.
func handedFunction(p *rule.Pass, v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.ChangeType:
		return handedFunction(p, v.X)
	case *ssa.MakeClosure:
		return handedFunction(p, v.Fn)
	case *ssa.Function:
		if v.Parent() != nil || len(v.Blocks) > 0 && p.Known.Own(v) && !saysRetry(v.Name()) && !negative(v.Name()) {
			return v
		}
	}
	return nil
}

// callbacks reports functions that a helper calls again when they fail, and
// that certainly fail on a final response.
// A helper that chooses by the error in a way that is not understood may well
// stop at the final ones, so it is left out. Only the status masks of the callback count: what it returns for
// other failures is not known.
func callbacks(p *rule.Pass) {
	for c, op := range p.RetriedCallbacks() {
		if p.Selective(c) {
			continue
		}
		fails, guessed := p.RetriedFailures(c, op)
		names := forbidden(p, c.Pos(), fails, false, false)
		if len(names) > 0 {
			helper := dataflow.Describe(c.Common())
			p.ReportAt(c, rule.Sure(!guessed && confidence(names) == rule.High), "retries through "+helper+" on status "+strings.Join(names, ", "), helper)
		}
	}
}
