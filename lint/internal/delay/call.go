package delay

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// call judges the result of a call. Names come before bodies: a function that is
// called jitter is random, whatever it does, and one called retryAfter repeats
// what the server said.
// The order of the cases matters: the operation's own result comes before a
// name, and a name before a body.
func (s *slicer) call(c *ssa.Call, fr *frame) {
	com := c.Common()
	name, pkg := dataflow.CalleeName(com), dataflow.CalleePkg(com)
	switch {
	// The operation itself said how long to wait.
	case s.ops[c]:
		s.fl.server = true
	case randPkgs[pkg] || jitterWord.MatchString(name):
		s.fl.jitter = true
	case serverWord.MatchString(name) || pkg == "net/http" && (name == "Get" || name == "Values"):
		s.fl.server = true
		s.otherwise(com.Args, fr)
	case pkg == "cmp" && name == "Or":
		s.chosen(com.Args, fr)
	case setting(c):
		s.fl.fixed = true
	case name == "min" || name == "max" || pkg == "math" || pkg == "strconv" || pkg == "time" && name != "Now" && name != "Since" && name != "Until":
		s.calc(c, name, fr)
	case com.IsInvoke() || dataflow.Static(com) == nil:
		s.value(c, fr)
	default:
		s.helper(c, fr)
	}
}

// otherwise walks the durations that a parser of the server's word is given: where
// the server says nothing, they are the wait. One that does not change may be a
// ceiling just as well, and says nothing.
func (s *slicer) otherwise(args []ssa.Value, fr *frame) {
	for _, a := range args {
		if !dataflow.IsDuration(a.Type()) {
			continue
		}
		was, seen := s.fl, maps.Clone(s.seen)
		if s.walk(a, fr); !s.fl.growing && !s.fl.jitter && !s.fl.equal {
			s.fl, s.seen = was, seen
		}
	}
}

// calc walks the operands of plain arithmetic. A power grows with its exponent,
// which counts as arithmetic on it. Constant operands are left out, as in
// min(d, time.Minute), where d decides.
// Without that, every min with a ceiling would count as a fixed wait.
func (s *slicer) calc(c *ssa.Call, name string, fr *frame) {
	if isPower(name) {
		s.arith++
		s.power++
		defer func() { s.arith, s.power = s.arith-1, s.power-1 }()
	}
	args := c.Common().Args
	if name == "min" {
		args = decisive(args)
	}
	open := false
	for _, a := range args {
		if !dataflow.IsConst(a) || len(args) == 1 {
			open = true
			s.walk(a, fr)
		}
	}
	s.fl.fixed = s.fl.fixed || !open && len(args) > 0 // of constants alone
}

// chosen walks the values of which the first that is not zero counts, as in
// cmp.Or(setting, time.Second): each of them may be the wait.
func (s *slicer) chosen(args []ssa.Value, fr *frame) {
	for _, a := range args {
		for _, v := range dataflow.Variadic(a) {
			s.walk(v, fr)
		}
	}
}

// isPower reports whether a function of package math raises to a power.
func isPower(name string) bool {
	return strings.HasPrefix(name, "Pow") || strings.HasPrefix(name, "Exp") || name == "Ldexp"
}

// helper descends into a function of this package, or asks its fact. All that it
// may return counts, as if it were merged. A closure that keeps its own state
// between calls may do anything with it.
// The slice enters at most four levels of helpers.
func (s *slicer) helper(c *ssa.Call, fr *frame) {
	com := c.Common()
	fn := dataflow.Static(com)
	// Without a body, or too deep in helpers that call helpers, only the fact
	// is left.
	if len(fn.Blocks) == 0 || fr.depth >= 4 {
		sum := fr.s.Known.Of(com)
		if sum == nil || sum.Delay == fact.Pluggable {
			s.fl.plug = true
			return
		}
		s.drawn(com.Args, fr)
		s.fl.growing = s.fl.growing || sum.Delay == fact.Growing
		s.fl.jitter = s.fl.jitter || sum.Delay == fact.Jittered
		s.fl.equal = s.fl.equal || sum.Delay == fact.EqualJitter
		s.fl.fixed = s.fl.fixed || sum.Delay == fact.Fixed
		return
	}
	s.enter(fn, com.Args, fr)
}

// drawn notes that a number which a helper of another package makes a wait of is
// random, or the server's. Its fact says how the wait follows from the number, and
// not what the number is.
func (s *slicer) drawn(args []ssa.Value, fr *frame) {
	if fr.depth >= 4 {
		return
	}
	for _, a := range args {
		if !dataflow.IsNumber(a.Type()) || dataflow.IsConst(a) {
			continue
		}
		sub, inner := newSlicer(nil), *fr
		sub.ops, sub.steps = s.ops, s.steps
		inner.depth++
		sub.walk(a, &inner)
		s.steps = sub.steps
		s.fl.jitter = s.fl.jitter || sub.fl.jitter || sub.fl.equal
		s.fl.server = s.fl.server || sub.fl.server
	}
}

// enter walks what a function may return, as if it stood where it is called.
func (s *slicer) enter(fn *ssa.Function, args []ssa.Value, fr *frame) {
	sub := &frame{s: fr.s.Known.Scope(fn), args: args, up: fr, depth: fr.depth + 1}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		for _, r := range ret.Results {
			if dataflow.IsDuration(r.Type()) || len(ret.Results) == 1 {
				s.walk(r, sub)
			}
		}
	}
	if s.stepsByArgument(fn, args, fr) {
		s.fl.stepped = true
	}
	if !s.fl.growing && slices.ContainsFunc(fn.FreeVars, dataflow.Assigned) {
		s.fl.plug = true
	}
}

// stepsByArgument reports whether fn chooses among constants and is given
// something that the loop varies, such as the number of the attempt: a schedule
// that is written as a switch.
// One constant alone is a fixed wait, so at least two must differ.
func (s *slicer) stepsByArgument(fn *ssa.Function, args []ssa.Value, fr *frame) bool {
	values := map[int64]bool{}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		if len(ret.Results) != 1 {
			continue
		}
		if n, ok := dataflow.ConstInt(ret.Results[0]); ok {
			values[n] = true
		}
	}
	return len(values) > 1 && slices.ContainsFunc(args, func(a ssa.Value) bool { return s.variant(a, fr) })
}

// inOtherLoop reports whether a phi outside the region's loop belongs to a loop
// around it, whose iterations may vary the wait. Each of them begins a new
// series of attempts.
func inOtherLoop(v *ssa.Phi, fr *frame) bool {
	for l := fr.l.Parent; l != nil; l = l.Parent {
		if l.Header == v.Block() {
			return true
		}
	}
	return false
}
