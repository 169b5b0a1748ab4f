package rule

import (
	"go/ast"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
)

// Ops names the operations that a region retries.
// At most two are named, since a message is one line.
func Ops(r *retryloop.Region) string {
	var names []string
	for _, c := range r.Ops {
		n := dataflow.Describe(c.Common())
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) > 2 {
		names = append(names[:2], "others")
	}
	return strings.Join(names, ", ")
}

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
func Wait(r *retryloop.Region) string {
	switch {
	case r.Delay.Known:
		return r.Delay.Value.String()
	case r.Delay.Name != "":
		return r.Delay.Name
	}
	return "the same time"
}
