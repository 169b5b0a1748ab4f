package rule

import (
	"go/ast"

	"github.com/forbear-go/forbear/lint/internal/retry"
)

// LastName returns the name that an expression ends with, as in a.b.Name; nil
// for one that is no name.
func LastName(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	}
	return nil
}

// Wait says how long a fixed wait is.
// A name is better than nothing: it leads the reader to where the wait is set.
func Wait(r *retry.Retry) string {
	switch {
	case r.Delay.Known:
		return r.Delay.Value.String()
	case r.Delay.Name != "":
		return r.Delay.Name
	}
	return "the same time"
}
