package nonretryable

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/response"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// serviceConfigs reports gRPC service configs, in the JSON form that clients
// take as a string, whose retry policies name final codes.
// A constant is judged where its text stands, and not again at each use. A sum
// of constants is judged as a whole, which is why the walk stops at the
// outermost expression.
func serviceConfigs(p *rule.Pass) {
	for _, f := range p.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			v := p.TypesInfo.Types[e].Value
			if v == nil || v.Kind() != constant.String {
				return true
			}
			if _, isName := e.(*ast.Ident); isName { // reported where the constant is
				return false
			}
			serviceConfig(p, e, constant.StringVal(v))
			return false
		})
	}
}

// serviceConfig judges one text. Text that is no JSON is not judged: it may be
// a part of one that is put together elsewhere.
// The key is looked for first, so that other strings are not parsed.
func serviceConfig(p *rule.Pass, at ast.Expr, text string) {
	if !strings.Contains(text, "retryableStatusCodes") {
		return
	}
	// encoding/json matches keys without regard to case.
	var config struct {
		MethodConfig []struct {
			RetryPolicy struct{ RetryableStatusCodes []any }
		}
	}
	if json.Unmarshal([]byte(text), &config) != nil {
		return
	}
	var names []string
	for _, m := range config.MethodConfig {
		for _, c := range m.RetryPolicy.RetryableStatusCodes {
			r, ok := codeOf(c)
			if ok && final(p, at.Pos(), r) && !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	if len(names) > 0 {
		p.ReportNode(at, confidence(names), "the service config makes "+strings.Join(names, ", ")+" retryable")
	}
}

// codeOf returns the failure that a service config names by its name or by its
// number.
// gRPC accepts both forms, and names in any case.
func codeOf(code any) (response.Response, bool) {
	switch c := code.(type) {
	case string:
		return response.FindCode(strings.ToUpper(c))
	case float64:
		return response.Find(int64(c), true)
	}
	return response.Response{}, false
}
