package rule

import (
	"go/ast"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// RegionConfidence says how sure it is that a region is a retry of a call
// across a boundary.
// Names that speak of waiting point to a poller, and those of a retry to a
// retry; without either, only a remote call makes it sure.
func RegionConfidence(r *retryloop.Region) Confidence {
	// A ticker runs on its own, so its loop is a poller more often than a retry.
	ticker := slices.ContainsFunc(r.Waits, func(w *delay.Wait) bool { return w.Ticker })
	switch {
	case ticker && r.Waiting, r.Waiting && r.Boundary == send.Local: // a lock file, a local state
		return Low
	case !r.Pure, r.Weak, r.Boundary == send.Local, ticker:
		return Medium
	case r.Waiting, r.WaitFirst && !r.Spoken:
		return Medium
	case r.Boundary == send.Remote, r.Spoken:
		return High
	}
	return Medium
}

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
