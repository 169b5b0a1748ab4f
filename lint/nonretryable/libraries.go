package nonretryable

import (
	"go/ast"
	"go/constant"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/status"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// libraries reports codes and statuses that are handed to options of retry
// libraries, one by one or in a literal.
func libraries(p *rule.Pass) {
	for _, m := range table.Find(p, table.NonRetryable) {
		if m.Call == nil {
			continue
		}
		limits, _ := p.Limits(m.Pos())
		var names []string
		for _, a := range m.Call.Args {
			list := []ast.Expr{a}
			if lit, ok := ast.Unparen(a).(*ast.CompositeLit); ok {
				list = lit.Elts
			}
			for _, e := range list {
				if name := finalAnswer(limits, p.TypesInfo.Types[e].Value); name != "" {
					names = append(names, name)
				}
			}
		}
		if len(names) > 0 {
			p.Report(rule.Finding{
				Confidence: confidence(nil, names), Pos: m.Pos(), End: m.Node.End(),
				Message: m.Entry.Message + " makes " + strings.Join(names, ", ") + " retryable",
			})
		}
	}
}

// finalAnswer names a constant that is a final status or gRPC code, and is ""
// for any other.
func finalAnswer(limits config.Limits, v constant.Value) string {
	if v == nil || v.Kind() != constant.Int {
		return ""
	}
	n, _ := constant.Int64Val(v)
	grpc := n < 100
	i := slices.Index(status.Statuses[:], n)
	if grpc {
		i = slices.Index(status.Codes[:], n)
	}
	if i < 1 || limits.MayRetry(answer(i, grpc), !final(i, grpc)) {
		return ""
	}
	return answer(i, grpc)
}
