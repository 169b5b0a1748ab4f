package nonretryable

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// serviceConfigs reports gRPC service configs, in the JSON form that clients
// take as a string, whose retry policies name final codes.
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
			if _, isName := e.(*ast.Ident); isName { // told where the constant is
				return false
			}
			serviceConfig(p, e, constant.StringVal(v))
			return false
		})
	}
}

func serviceConfig(p *rule.Pass, at ast.Expr, text string) {
	if !strings.Contains(text, "retryableStatusCodes") {
		return
	}
	var config struct {
		MethodConfig []struct {
			RetryPolicy struct{ RetryableStatusCodes []any }
		}
	}
	if json.Unmarshal([]byte(text), &config) != nil {
		return
	}
	limits, _ := p.Limits(at.Pos())
	var names []string
	for _, m := range config.MethodConfig {
		for _, c := range m.RetryPolicy.RetryableStatusCodes {
			r, ok := codeOf(c)
			if ok && !limits.MayRetry(r.Name, !r.Final) && !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	p.Report(rule.Finding{
		Confidence: confidence(nil, names), Pos: at.Pos(), End: at.End(),
		Message: "the service config makes " + strings.Join(names, ", ") + " retryable",
	})
}

// codeOf returns the failure that a service config names by its name or by its
// number.
func codeOf(code any) (status.Response, bool) {
	switch c := code.(type) {
	case string:
		return status.FindCode(strings.ToUpper(c))
	case float64:
		return status.Find(int64(c), true)
	}
	return status.Response{}, false
}
