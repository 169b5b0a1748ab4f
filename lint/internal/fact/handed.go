package fact

import (
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// laterWord marks calls that take a function to run it another time: their error
// says that they could not take it, and not that it has failed.
var laterWord = regexp.MustCompile(`(?i)submit|schedule|enqueue|queue|defer|register|handle|subscribe|async|spawn|start|after|cron|^(go|add|on|use|set|push|listen|serve)|Go$|hook|middleware|notify`)

// Handed returns the function of the package that a call is handed to carry out, or
// nil. Both may fail, so that the call fails with the function: a circuit breaker, a
// tracer or a pool does what it is given. A function that is given an error says
// what becomes of one, and is no such function.
func (s *Table) Handed(c *ssa.CallCommon) (fn *ssa.Function) {
	if !fallible(c.Signature().Results()) {
		return nil
	}
	for _, a := range c.Args {
		g, _ := dataflow.FuncValue(a)
		if g == nil || len(g.Blocks) == 0 || !s.Own(g) || !fallible(g.Signature.Results()) || takesError(g) {
			continue
		}
		if fn != nil {
			return nil
		}
		fn = g
	}
	if fn != nil && laterWord.MatchString(dataflow.CalleeName(c)) {
		return nil
	}
	return fn
}

// fallible reports whether the last of some results is an error.
func fallible(res *types.Tuple) bool {
	return res.Len() > 0 && dataflow.IsError(res.At(res.Len()-1).Type())
}

// takesError reports whether a function is given an error.
func takesError(fn *ssa.Function) bool {
	return slices.ContainsFunc(fn.Params, func(p *ssa.Parameter) bool { return dataflow.IsError(p.Type()) })
}
