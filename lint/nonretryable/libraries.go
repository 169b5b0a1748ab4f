package nonretryable

import (
	"go/ast"
	"go/constant"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/response"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// libraries reports codes and statuses that are handed to options of retry
// libraries, one by one or in a literal.
// The table names the options; here only their arguments are read, constant by
// constant.
func libraries(p *rule.Pass) {
	for _, m := range table.Find(p.Pass, table.NonRetryable) {
		if m.Call == nil {
			continue
		}
		var names []string
		for _, a := range m.Call.Args {
			list := []ast.Expr{a}
			// Variadic options take them one by one, others take a slice.
			if lit, ok := ast.Unparen(a).(*ast.CompositeLit); ok {
				list = lit.Elts
			}
			for _, e := range list {
				if r, ok := failure(p.TypesInfo.Types[e].Value); ok && final(p, m.Node.Pos(), r) {
					names = append(names, r.Name)
				}
			}
		}
		if len(names) > 0 {
			p.ReportNode(m.Node, confidence(names), m.Entry.Message+" makes "+strings.Join(names, ", ")+" retryable")
		}
	}
}

// failure returns the status or gRPC code that a constant is; ok is false for any
// other value.
// Numbers below 100 are taken for gRPC codes, which end at 16, and others for
// HTTP statuses.
func failure(v constant.Value) (r response.Response, ok bool) {
	if v == nil || v.Kind() != constant.Int {
		return r, false
	}
	n, _ := constant.Int64Val(v)
	return response.Find(n, n < 100)
}
