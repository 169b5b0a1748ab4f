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
		// A negative name turns the meaning of the result around.
		if fn == nil || seen[fn] || !predicateWord.MatchString(place) || negative.MatchString(place) {
			return
		}
		seen[fn] = true
		judge(p, fn, place)
	}
	for _, fn := range p.Funcs {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			switch in := in.(type) {
			case *ssa.Store:
				if f, ok := in.Addr.(*ssa.FieldAddr); ok {
					predicate(in.Val, dataflow.FieldName(f.X.Type(), f.Field))
				}
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
	for {
		switch x := v.(type) {
		case *ssa.ChangeType:
			v = x.X
			continue
		case *ssa.MakeClosure:
			v = x.Fn
			continue
		case *ssa.Function:
			if x.Parent() != nil {
				return x
			}
		}
		return nil
	}
}

// callbacks reports functions that a helper calls again when they fail, and
// that certainly fail on a final response.
// A helper that chooses by the error may well stop at the final ones, so it is
// left out. Only the status masks of the callback count: what it returns for
// other failures is not known.
func callbacks(p *rule.Pass) {
	for _, fn := range p.Funcs {
		for c := range dataflow.Instrs[*ssa.Call](fn) {
			op := p.RetriedCallback(c)
			if op == nil || p.Selective(c) {
				continue
			}
			limits, _ := p.Limits(c.Pos())
			names := forbidden(limits, p.Local(op).Fails, false, false)
			if len(names) == 0 {
				continue
			}
			helper := dataflow.Describe(c.Common())
			p.Report(rule.Finding{
				Confidence: confidence(nil, names), Pos: c.Pos(), Function: rule.FunctionName(fn), Callees: []string{helper},
				Message: "retries through " + helper + " on status " + strings.Join(names, ", "),
			})
		}
	}
}
