package delay

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Deferred returns the waits with equal jitter that a function draws and does
// not sleep: it hands them to a store, or notes the time of the next attempt.
// A durable retry has no loop that a region could be found in, so that its
// backoff can be judged only where it is drawn.
//
// Two things keep jitter of other kinds out. The fixed half grows with
// something, as a backoff does and a period does not; and the wait is kept, so
// that a loop which sleeps it, and is no retry, is not judged here.
func Deferred(s *fact.Scope) (found []*ssa.BinOp) {
	for v := range dataflow.Instrs[*ssa.BinOp](s.Fn) {
		if v.Op != token.ADD {
			continue
		}
		if half := fixedHalf(v); half != nil && exponential(half, map[ssa.Value]bool{}) && kept(s, v, 0) {
			found = append(found, v)
		}
	}
	return found
}

// fixedHalf returns the half of a wait with equal jitter that is not random, or
// nil. Beside d/2 + rand(d/2), floor + rand(floor) counts: it is the same draw,
// of a wait that is called by its half.
func fixedHalf(v *ssa.BinOp) ssa.Value {
	for _, p := range [2][2]ssa.Value{{v.X, v.Y}, {v.Y, v.X}} {
		floor := dataflow.Strip(p[0])
		if equalJitter(v) && halfOf(floor) != nil || randomArg(p[1], 0) == floor {
			return floor
		}
	}
	return nil
}

// exponential reports whether a duration is computed from a power or a shift by
// something that varies: the number of attempts, as a rule.
func exponential(v ssa.Value, seen map[ssa.Value]bool) bool {
	v = dataflow.Strip(v)
	if seen[v] {
		return false
	}
	seen[v] = true
	deeper := func(v ssa.Value) bool { return exponential(v, seen) }
	switch v := v.(type) {
	case *ssa.BinOp:
		return v.Op == token.SHL && !dataflow.IsConst(v.Y) || deeper(v.X) || deeper(v.Y)
	case *ssa.Call:
		name := dataflow.CalleeName(v.Common())
		math := dataflow.CalleePkg(v.Common()) == "math"
		if math && isPower(name) {
			return true
		}
		return (math || name == "min" || name == "max") && slices.ContainsFunc(v.Common().Args, deeper)
	case *ssa.Phi:
		return slices.ContainsFunc(v.Edges, deeper)
	}
	return false
}

// kept reports whether a duration outlives the moment: it is stored, it is
// added to a time, or it is handed to a call that neither sleeps nor logs.
func kept(s *fact.Scope, v ssa.Value, depth int) bool {
	if depth > 6 {
		return false
	}
	for ref := range dataflow.Refs[ssa.Instruction](v) {
		switch ref := ref.(type) {
		case *ssa.Store:
			if _, local := ref.Addr.(*ssa.Alloc); !local {
				return true
			}
		case *ssa.Convert, *ssa.ChangeType, *ssa.Phi:
			if kept(s, ref.(ssa.Value), depth+1) {
				return true
			}
		case *ssa.Call:
			if WaitOf(s, ref, nil) != nil {
				continue
			}
			// A log line keeps nothing. Any other call may be the store of a durable retry,
			// so it counts as kept.
			switch name := dataflow.CalleeName(ref.Common()); dataflow.CalleePkg(ref.Common()) {
			case "fmt", "log", "log/slog":
			case "time":
				if name == "Add" {
					return true
				}
			case "":
				if _, builtin := ref.Common().Value.(*ssa.Builtin); builtin && kept(s, ref, depth+1) {
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}
