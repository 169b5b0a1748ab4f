package nonretryable

import (
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// handed judges function literals that are predicates by the place that they
// are handed to: client.CheckRetry = func(...) bool, retry.RetryIf(func...).
// Such a literal has no name of its own; the name of the field or the option
// says what it decides. Each literal is judged once, however often it is handed
// on.
func handed(p *rule.Pass) {
	seen := map[*ssa.Function]bool{}
	predicate := func(v ssa.Value, place string) {
		fn := literal(v)
		if fn != nil && !seen[fn] && saysRetry(place) {
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
				for _, a := range in.Common().Args {
					predicate(a, dataflow.CalleeName(in.Common()))
				}
			}
		}
	}
}

// literal returns the function literal behind v, or nil.
// A declared function is judged by its own name, in predicates.
func literal(v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.ChangeType:
		return literal(v.X)
	case *ssa.MakeClosure:
		return literal(v.Fn)
	case *ssa.Function:
		if v.Parent() != nil {
			return v
		}
	}
	return nil
}

// callbacks reports functions that a helper calls again when they fail, and
// that certainly fail on a final response.
// A helper that chooses by the error may well stop at the final ones, so it is
// left out. Only the status masks of the callback count: what it returns for
// other failures is not known.
func callbacks(p *rule.Pass) {
	for c, op := range p.RetriedCallbacks() {
		if p.Selective(c) {
			continue
		}
		names := forbidden(p, c.Pos(), p.Known.Local(op).Fails, false, false)
		if len(names) > 0 {
			helper := dataflow.Describe(c.Common())
			p.ReportAt(c, confidence(names), "retries through "+helper+" on status "+strings.Join(names, ", "), helper)
		}
	}
}
