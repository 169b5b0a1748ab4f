package nonretryable

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/response"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// lists reports tables of retryable statuses that hold a final one: a variable
// whose name says "retr", initialized with integers or map keys.
// It needs no types of a known library: the name and the numbers are enough.
func lists(p *rule.Pass) {
	for _, f := range p.Files {
		for n := range ast.Preorder(f) {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if i < len(n.Values) {
						list(p, id.Name, n.Values[i])
					}
				}
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if id := rule.LastName(l); id != nil && len(n.Lhs) == len(n.Rhs) {
						list(p, id.Name, n.Rhs[i])
					}
				}
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					list(p, id.Name, n.Value)
				}
			}
		}
	}
}

// list judges one table.
// A table of other numbers, such as error codes of a database, may hold 404 by
// accident. So at least one element must be a status that is rightly retried, or
// a gRPC code. In a map to bool, entries that are false are left out: they say
// that the status is not retried.
func list(p *rule.Pass, name string, v ast.Expr) {
	lit, ok := ast.Unparen(v).(*ast.CompositeLit)
	if !ok || !saysRetry(name) {
		return
	}
	_, isMap := p.TypesInfo.TypeOf(lit).Underlying().(*types.Map)
	var names []string
	other := false // a status that may be retried: the table is one of statuses
	for _, el := range lit.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			if val := p.TypesInfo.Types[kv.Value].Value; isMap && val != nil && val.Kind() == constant.Bool && !constant.BoolVal(val) {
				continue
			}
			if el = kv.Value; isMap {
				el = kv.Key
			}
		}
		c := p.TypesInfo.Types[el].Value
		if c == nil || c.Kind() != constant.Int {
			continue
		}
		n, _ := constant.Int64Val(c)
		grpc := types.TypeString(p.TypesInfo.TypeOf(el), nil) == "google.golang.org/grpc/codes.Code"
		// 429, 408 and 5xx are what a table of retryable statuses holds.
		other = other || grpc || n == 429 || n == 408 || n >= 500 && n < 600
		if r, ok := response.Find(n, grpc); ok && final(p, lit.Pos(), r) {
			names = append(names, r.Name)
		}
	}
	if len(names) > 0 && other {
		p.ReportNode(lit, confidence(names), name+" holds "+strings.Join(names, ", "))
	}
}
