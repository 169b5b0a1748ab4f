package dataflow

import "golang.org/x/tools/go/ssa"

// Within reports whether a function is one of some kind, or leads to one by so many
// calls. Each function is looked at once, so that what it says does not depend on
// the way to it, and no more than a hundred are.
func Within(fn *ssa.Function, calls int, callees func(*ssa.Function) []*ssa.Function, is func(*ssa.Function) bool) bool {
	seen := map[*ssa.Function]bool{fn: true}
	level := []*ssa.Function{fn}
	for ; len(level) > 0 && calls >= 0; calls-- {
		var next []*ssa.Function
		for _, f := range level {
			if is(f) {
				return true
			}
			if calls == 0 {
				continue
			}
			for _, g := range callees(f) {
				if !seen[g] && len(seen) < 100 {
					seen[g] = true
					next = append(next, g)
				}
			}
		}
		level = next
	}
	return false
}
