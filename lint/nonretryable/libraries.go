package nonretryable

import (
	"go/ast"
	"go/constant"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/status"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// libraries reports codes and statuses that are handed to options of retry
// libraries, one by one or in a literal.
// The table names the options; here only their arguments are read, constant by
// constant.
func libraries(p *rule.Pass) {
	for _, m := range table.Find(p, table.NonRetryable) {
		if m.Call == nil {
			continue
		}
		limits, _ := p.Limits(m.Pos())
		var names []string
		for _, a := range m.Call.Args {
			list := []ast.Expr{a}
			// Variadic options take them one by one, others take a slice.
			if lit, ok := ast.Unparen(a).(*ast.CompositeLit); ok {
				list = lit.Elts
			}
			for _, e := range list {
				if name := finalName(limits, p.TypesInfo.Types[e].Value); name != "" {
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

// finalName names a constant that is a final status or gRPC code, and is ""
// for any other.
// Numbers below 100 are taken for gRPC codes, which end at 16, and others for
// HTTP statuses.
func finalName(limits config.Limits, v constant.Value) string {
	if v == nil || v.Kind() != constant.Int {
		return ""
	}
	n, _ := constant.Int64Val(v)
	r, ok := status.Find(n, n < 100)
	if !ok || limits.MayRetry(r.Name, !r.Final) {
		return ""
	}
	return r.Name
}
