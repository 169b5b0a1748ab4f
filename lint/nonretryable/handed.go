package nonretryable

import (
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/response"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// handed judges functions that are predicates by the place that they are handed to:
// client.CheckRetry = policy, retry.RetryIf(func...). The name of the field or the
// option says what they decide. Each is judged once.
func handed(p *rule.Pass) {
	seen := map[*ssa.Function]bool{}
	predicate := func(v ssa.Value, place string) {
		fn := retry.FuncOf(v)
		if fn == nil || len(fn.Blocks) == 0 || !saysRetry(place) || seen[fn] || !retry.IsAsked(fn) || fn.Parent() == nil && saysRetry(fn.Name()) {
			return
		}
		seen[fn] = true
		judge(p, fn, place)
	}
	for _, fn := range p.Funcs {
		for in := range retry.InstrsOf[ssa.Instruction](fn) {
			switch in := in.(type) {
			case *ssa.Store:
				predicate(in.Val, retry.FieldName(in.Addr))
			case *ssa.Call:
				for _, a := range in.Common().Args {
					predicate(a, eval.CalleeName(in.Common()))
				}
			}
		}
	}
}

// callbacks reports functions that a helper calls again when they fail, and that
// certainly fail on a final response.
func callbacks(p *rule.Pass) {
	for _, h := range p.Handed() {
		names := p.RetriedHanded(h, func(resp response.Response) bool { return final(p, h.Call.Pos(), resp) })
		if len(names) > 0 && confidence(names) == rule.High {
			helper := retry.Describe(h.Call.Common())
			p.ReportAt(h.Call, rule.High, "retries through "+helper+" on status "+strings.Join(names, ", "), helper)
		}
	}
}
