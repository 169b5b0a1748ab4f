package retryloop

import "golang.org/x/tools/go/ssa"

func boundary(known *Table, c *ssa.Call) Boundary {
	if b := boundaryOf(c.Common()); b != Unknown {
		return b
	}
	if s := known.of(c.Common()); s != nil {
		switch {
		case s.Remote:
			return Remote
		case s.Local:
			return Local
		}
	}
	if inside(known, static(c.Common()), 0) {
		return Local
	}
	return Unknown
}

// inside reports whether fn certainly touches nothing but the memory of the
// program: all that it calls is known, down to packages that only compute.
func inside(known *Table, fn *ssa.Function, depth int) bool {
	if fn == nil || len(fn.Blocks) == 0 || !known.own(fn) || depth > 4 {
		return false
	}
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Go, *ssa.Send, *ssa.Select:
				return false
			case ssa.CallInstruction:
				c := in.Common()
				if _, builtin := c.Value.(*ssa.Builtin); builtin || purePkgs[CalleePkg(c)] && !c.IsInvoke() {
					continue
				}
				if c.IsInvoke() && CalleePkg(c) == "" { // error.Error
					continue
				}
				if !inside(known, static(c), depth+1) {
					return false
				}
			}
		}
	}
	return true
}
