package delay

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// frame is one level of a slice that descends into helpers: the function whose
// values are walked, and the arguments of the call that led to it, which are
// values of the frame above.
// A helper is walked once for each call, since its parameters mean different
// values there.
type frame struct {
	s     *fact.Scope
	l     *dataflow.Loop // nil inside helpers
	args  []ssa.Value
	up    *frame
	depth int
	// again holds, for a function that calls itself, what it passes on and the
	// frame that these values belong to; nil for any other.
	again     []ssa.Value
	againFrom *frame
}

// slicer classifies a duration by walking backwards through its definition.
//
// The depth of arithmetic is what tells growth: a value that is met again below
// more arithmetic than at its first visit is computed from itself, as in d *= 2.
// A cycle without arithmetic is a variable that a loop leaves as it is.
type slicer struct {
	// fl is what was met so far.
	fl    flags
	seen  map[place]int // arithmetic depth of the last visit
	stack map[place]int // arithmetic depth at entry, of what is being walked
	arith int
	power int // how many of them raise to a power
	ops   map[*ssa.Call]bool
	steps int
	// fields are those whose stores are being walked, and selfMade says that one
	// of them was met again below arithmetic. between holds the functions that run
	// between attempts, once it was asked for.
	fields   map[*types.Var]bool
	selfMade bool
	between  map[*ssa.Function]bool
}

// place is a value in one frame: in another, the parameters that it is made of
// are other values.
type place struct {
	v  ssa.Value
	fr *frame
}

// newSlicer returns a slicer for a region with the given operations.
// A nil list is right for a wait that stands outside of a region.
func newSlicer(ops []*ssa.Call) *slicer {
	s := &slicer{seen: map[place]int{}, stack: map[place]int{}, ops: map[*ssa.Call]bool{}, fields: map[*types.Var]bool{}}
	for _, c := range ops {
		s.ops[c] = true
	}
	return s
}

// The names of what is called, and of the variables on the way, stand for what
// cannot be looked into: a library's jitter, a header that was parsed before.
var (
	jitterWord = regexp.MustCompile(`(?i)jitter|rand|fuzz|splay|perturb`)
	serverWord = regexp.MustCompile(`(?i)retry.?after|ratelimit.?reset|rate.?reset|reset`)
	// attemptWord marks parameters that number the attempts.
	attemptWord = regexp.MustCompile(`(?i)attempt|retr(y|ies)|tries|failures`)
	randPkgs    = map[string]bool{"math/rand": true, "math/rand/v2": true, "crypto/rand": true}
)

// maxSteps bounds a slice: a table that is computed by a long function is not
// worth more.
const maxSteps = 2000

// walk visits v, unless it is open further up or was visited deeper before.
func (s *slicer) walk(v ssa.Value, fr *frame) {
	if s.steps++; v == nil || s.steps > maxSteps {
		return
	}
	at := place{v, fr}
	// The walk has come back to a value that it is in the middle of.
	if entry, open := s.stack[at]; open {
		if s.arith > entry {
			s.fl.growing = true
		}
		return
	}
	// A value that was met already is walked again below more arithmetic: only
	// then can a cycle through several phis show that it grows.
	if depth, ok := s.seen[at]; ok && s.arith <= depth || s.arith > 8 {
		return
	}
	s.seen[at] = s.arith
	s.stack[at] = s.arith
	s.step(v, fr)
	delete(s.stack, at)
}

// step judges one value, and walks what it is made of.
func (s *slicer) step(v ssa.Value, fr *frame) {
	if jitterWord.MatchString(dataflow.ValueName(v)) {
		s.fl.jitter = true
	}
	in, isInstr := v.(ssa.Instruction)
	outside := fr.l != nil && isInstr && !fr.l.Contains(in)
	switch v := v.(type) {
	case *ssa.Const:
		s.constant(v)
	case *ssa.Parameter:
		s.parameter(v, fr)
	// What lies outside of the function is taken not to change meanwhile.
	case *ssa.FreeVar, *ssa.Global:
		s.fl.fixed = true
		s.named(v)
	case *ssa.Phi:
		s.merged(v, fr, outside)
	case *ssa.BinOp:
		s.binop(v, fr)
	case *ssa.Convert:
		s.walk(whole(v), fr)
	case *ssa.ChangeType, *ssa.MultiConvert:
		s.walk(dataflow.Operand(v), fr)
	case *ssa.UnOp:
		s.load(v, fr)
	case *ssa.Field:
		s.field(v)
	case *ssa.Index:
		s.indexed(v.X, v.Index, fr)
	// A map holds what its owner put in.
	case *ssa.Lookup:
		s.fl.plug = true
	case *ssa.Extract:
		if _, ok := v.Tuple.(*ssa.Next); ok {
			s.fl.growing = true // one element of a range
			return
		}
		s.walk(v.Tuple, fr)
	case *ssa.Call:
		plug := s.fl.plug
		s.call(v, fr)
		// It was decided before the first attempt, once for all of them.
		if outside && !plug && s.fl.plug && fr.s.Innermost[v.Block()] == nil {
			s.fl.plug, s.fl.fixed = false, true
		}
	// A value of a kind that no wait is known to be made of.
	default:
		s.fl.plug = true
	}
}

// merged walks the values of a variable that branches or turns merge. It may be
// the same for all attempts at one item and another one for the next: then the
// loop around it decides.
func (s *slicer) merged(v *ssa.Phi, fr *frame, outside bool) {
	if outside && inOtherLoop(v, fr) {
		s.fl.plug = true
		return
	}
	if fr.l != nil && v.Block() == fr.l.Header && raised(v, fr.l) {
		s.fl.stepped = true
	}
	for _, e := range decisive(v.Edges) {
		s.walk(e, fr)
	}
}

// field judges a field of a struct: one of what the operation returned, as in
// result.After, is the server's word.
func (s *slicer) field(v *ssa.Field) {
	if c := originCall(v.X); c != nil && s.ops[c] {
		s.fl.server = true
		return
	}
	s.named(v)
	s.fl.fixed = true
}

// whole returns what a conversion leaves of its operand: a random fraction of
// one is lost where a sum becomes an integer, and with it the jitter.
func whole(c *ssa.Convert) ssa.Value {
	if !dataflow.IsInteger(c.Type()) {
		return c.X
	}
	fraction := func(v ssa.Value) bool {
		draw, ok := v.(*ssa.Call)
		return ok && isRandCall(v) && strings.HasPrefix(dataflow.CalleeName(draw.Common()), "Float")
	}
	if fraction(c.X) {
		return nil
	}
	if sum, ok := c.X.(*ssa.BinOp); ok && sum.Op == token.ADD {
		switch {
		case fraction(sum.X):
			return sum.Y
		case fraction(sum.Y):
			return sum.X
		}
	}
	return c.X
}

// decisive returns the values among which a wait is chosen, without those that
// only cut it off: the time that is left until a deadline. Beside nothing but
// constants, such a time is the wait itself.
func decisive(values []ssa.Value) []ssa.Value {
	open := func(v ssa.Value) bool { return !dataflow.Timely(v, 0) && !dataflow.IsConst(v) }
	if !slices.ContainsFunc(values, open) {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v ssa.Value) bool { return dataflow.Timely(v, 0) })
}

// raised reports whether some turns of l set the variable p to a constant and
// others leave it as it is: its value goes up (or down) in steps, as in if n > 3
// { wait = time.Minute }. That is no cycle of arithmetic, and grows all the same.
func raised(p *ssa.Phi, l *dataflow.Loop) bool {
	kept, set := false, false
	seen := map[ssa.Value]bool{p: true}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		switch v := v.(type) {
		case *ssa.Const:
			set = true
		case *ssa.Phi:
			kept = kept || v == p
			if seen[v] {
				return
			}
			seen[v] = true
			for _, e := range v.Edges {
				visit(e)
			}
		}
	}
	for i, e := range p.Edges {
		if l.Blocks[p.Block().Preds[i]] {
			visit(e)
		}
	}
	return kept && set
}

// constant notes a constant wait. The largest one that is not part of a
// computation is the value that a finding names.
func (s *slicer) constant(v *ssa.Const) {
	s.fl.fixed = true
	n, ok := dataflow.ConstInt(v)
	if d := time.Duration(n); ok && s.arith == 0 && (s.fl.value == nil || d > *s.fl.value) {
		s.fl.value = &d
	}
}

// named notes the first name on the way, for the finding: "waits Interval every
// time".
func (s *slicer) named(v ssa.Value) {
	if n := dataflow.ValueName(v); n != "" && s.fl.name == "" {
		s.fl.name = n
	}
}

// parameter goes on with the argument of the call that led here. At the top
// there is none: the caller of the whole function decides, once for all
// attempts.
func (s *slicer) parameter(v *ssa.Parameter, fr *frame) {
	if a := fr.argument(v); a != nil {
		s.walk(a, fr.up)
		return
	}
	s.fl.fixed, s.fl.param = true, true
	if dataflow.IsNumber(v.Type()) && !dataflow.IsDuration(v.Type()) {
		s.fl.number = true
		s.fl.scaled = s.fl.scaled || s.power > 0 || attemptWord.MatchString(v.Name())
	}
	s.named(v)
	// The next call of the function itself may pass on something else.
	if i := slices.Index(fr.s.Fn.Params, v); fr.again != nil && i >= 0 && i < len(fr.again) {
		s.walk(fr.again[i], fr.againFrom)
	}
}

// argument returns what a parameter stands for in the frame above, or nil.
// A method value leaves out its receiver, so there may be fewer arguments than
// parameters.
func (fr *frame) argument(v *ssa.Parameter) ssa.Value {
	if i := slices.Index(fr.s.Fn.Params, v); fr.up != nil && i >= 0 && i < len(fr.args) {
		return fr.args[i]
	}
	return nil
}

// binop walks both operands. A constant operand of arithmetic does not make the
// result fixed, so that it is left out: in 2 * d, d decides. A shift by the
// number of the attempt doubles without a cycle.
func (s *slicer) binop(v *ssa.BinOp, fr *frame) {
	if equalJitter(v) {
		s.fl.equal = true
	}
	s.arith++
	defer func() { s.arith-- }()
	cx, cy := dataflow.IsConst(v.X), dataflow.IsConst(v.Y)
	if !cx || cy {
		s.walk(v.X, fr)
	}
	if !cy {
		if v.Op == token.SHL {
			s.power++
		}
		s.walk(v.Y, fr)
		if v.Op == token.SHL {
			s.power--
		}
	}
	if v.Op == token.SHL && !cy && s.variant(v.Y, fr) {
		s.fl.growing = true
	}
}

// variant reports whether v changes from one iteration to the next: it is merged
// in the loop, or computed from such a value, or is the parameter of a helper
// that is given one.
// It looks at the parts of a value only as far as arithmetic and calls of
// helpers go; a load is not followed. Its steps count as those of the slice.
func (s *slicer) variant(v ssa.Value, fr *frame) bool {
	if s.steps++; s.steps > maxSteps {
		return false
	}
	switch v := v.(type) {
	case *ssa.Phi:
		return fr.l != nil && fr.l.Contains(v)
	case *ssa.Convert, *ssa.ChangeType:
		return s.variant(dataflow.Operand(v), fr)
	case *ssa.BinOp:
		return s.variant(v.X, fr) || s.variant(v.Y, fr)
	case *ssa.Parameter:
		a := fr.argument(v)
		return a != nil && s.variant(a, fr.up)
	}
	return false
}
