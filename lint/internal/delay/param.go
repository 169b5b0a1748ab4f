package delay

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/fact"
)

// ParamOfAll returns the parameter of the function that each of the waits is
// for, cut off at a ceiling or not, and -1 when there is no such parameter: a
// helper that waits it every time leaves the interval to its caller.
func ParamOfAll(s *fact.Scope, waits []*Wait) int {
	var all *ssa.Parameter
	for _, w := range waits {
		if w.D == nil {
			return -1
		}
		p := uncapped(w.D)
		if p == nil || all != nil && all != p {
			return -1
		}
		all = p
	}
	if all == nil {
		return -1
	}
	return slices.Index(s.Fn.Params, all)
}
