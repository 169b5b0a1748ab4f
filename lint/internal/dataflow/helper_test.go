//forbear:plain rules have no goroutines; package lint runs them at once
package dataflow

import (
	"slices"
	"testing"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ssatest"
)

// load returns the flow of the function f of a source.
func load(t *testing.T, src string) *Func {
	t.Helper()
	return NewFunc(ssatest.Load(t, src).Fn(t, "f"))
}

// tested returns the value that the only comparison of an error with nil looks
// at, with the edges that success and failure take.
func tested(t *testing.T, f *Func) (v ssa.Value, ok, fail Edge) {
	t.Helper()
	for _, b := range f.Fn.Blocks {
		i := IfOf(b)
		if i == nil {
			continue
		}
		cmp, isCmp := i.Cond.(*ssa.BinOp)
		if !isCmp || !IsError(cmp.X.Type()) || !IsNil(cmp.Y) {
			continue
		}
		if cmp.Op.String() == "!=" {
			return cmp.X, Edge{From: b, I: 1}, Edge{From: b, I: 0}
		}
		return cmp.X, Edge{From: b, I: 0}, Edge{From: b, I: 1}
	}
	t.Fatal("the source compares no error with nil")
	return nil, Edge{}, Edge{}
}

// names returns the names of what calls call, sorted, each once.
func names(calls []*ssa.Call) (list []string) {
	for _, c := range calls {
		list = append(list, CalleeName(c.Common()))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
