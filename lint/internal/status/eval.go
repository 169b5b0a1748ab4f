package status

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// eval evaluates the values of one function under an assumption. A helper that
// is called gets one of its own, with what is known of the arguments.
//
// A condition that depends on anything but the status is open, and open is kept
// apart from no all the way up: the rules report only what is certain.
type eval struct {
	*assumption
	j      *Judge
	sc     *fact.Scope
	params map[*ssa.Parameter]known
	fn     *flow // of the whole function, once it is asked for
	turn   *flow // of the loop at hand
	depth  int   // calls between the question and this function
	// caller and args are the call that led here, or nil.
	caller *eval
	args   []ssa.Value
	active map[ssa.Value]bool
	conds  map[ssa.Value]judged // what does not depend on the flow
	*budget
}

// budget is shared by the evaluations that one question leads to.
type budget struct {
	steps int // left before the evaluation gives up
	nest  int // values under evaluation, each needed for the one before
	flows int // how often a value was seen that depends on the flow
	// spent says that the evaluation gave up on something, so that what it says
	// is not all that the code says.
	spent bool
	// leaves are the values of the first function that were found to hold the
	// status, or what carries it: a response or an error.
	leaves []ssa.Value
	// guessed says that a name decided, since the numbers are not known, or what
	// others may set otherwise.
	guessed bool
	asked   bool // a certificate error was asked for
}

// judged is a condition with what was noted when it was evaluated.
type judged struct {
	split
	leaves  []ssa.Value
	guessed bool
}

// Limits of an evaluation. Generated code has functions with thousands of
// branches, which lie deeply in each other.
const (
	evalSteps = 40_000
	evalNest  = 60
	evalDepth = 4
)

// known is what is known of a value that a caller hands over, or that the turn
// before has set. A value has one type, so that at most one or two of these
// say anything.
type known struct {
	num     *number
	truth   split // of a bool
	null    split // whether an error is nil
	members members
}

// know evaluates a value for a function that is given it.
func (e *eval) know(v ssa.Value) (k known) {
	switch {
	case dataflow.IsInteger(v.Type()):
		k.num = e.num(v)
	case dataflow.IsBool(v.Type()):
		k.truth = e.cond(v)
	case dataflow.IsError(v.Type()):
		k.null = e.null(v)
	default:
		k.members = e.members(v)
	}
	return k
}

// newEval returns the evaluation of a function whose caller is not known.
func (j *Judge) newEval(sc *fact.Scope, a *assumption) *eval {
	e := &eval{assumption: a, j: j, sc: sc, params: map[*ssa.Parameter]known{}, budget: &budget{steps: evalSteps}}
	e.active, e.conds = map[ssa.Value]bool{}, map[ssa.Value]judged{}
	for _, p := range sc.Fn.Params {
		if k, ok := j.statusParam(p, a); ok {
			e.params[p] = k
		}
	}
	return e
}

// statusParam returns what is known of a parameter by its name: an integer with
// a telling name holds the status, and one of codes.Code the code.
func (j *Judge) statusParam(p *ssa.Parameter, a *assumption) (k known, ok bool) {
	if a.cert || !dataflow.IsInteger(p.Type()) {
		return known{}, false
	}
	isCodes := isCodeType(p.Type())
	if a.grpc != isCodes || !isCodes && (!statusName.MatchString(p.Name()) || isExpected(p.Name())) {
		return known{}, false
	}
	return known{num: theStatus}, true
}

// enter makes the evaluation of a helper.
func (e *eval) enter(fn *ssa.Function, args []ssa.Value) *eval {
	sub := &eval{assumption: e.assumption, j: e.j, sc: e.j.known.Scope(fn), params: map[*ssa.Parameter]known{}, depth: e.depth + 1, caller: e, args: args, budget: e.budget}
	sub.active, sub.conds = map[ssa.Value]bool{}, map[ssa.Value]judged{}
	for i, a := range args {
		if i < len(fn.Params) {
			sub.params[fn.Params[i]] = e.know(a)
		}
	}
	return sub
}

// spend counts a step into a value, and reports whether there is one left. It
// must be followed by done if it does.
func (e *eval) spend() bool {
	if e.steps <= 0 || e.nest > evalNest {
		e.spent = true
		return false
	}
	e.steps--
	e.nest++
	return true
}

func (e *eval) done() { e.nest-- }

// leaf notes that a value of the first function carries the status.
func (e *eval) leaf(v ssa.Value) {
	if e.depth == 0 {
		e.leaves = append(e.leaves, v)
	}
}

// results merges what a function's returns say of result index. of evaluates
// one of them.
func (e *eval) results(index int, of func(ssa.Value) split) split {
	var m merger
	for _, b := range e.sc.Fn.Blocks {
		live := e.whole().in[b]
		if live.Empty() {
			continue
		}
		ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
		if !ok || dataflow.NoReturn(b) {
			continue
		}
		if index >= len(ret.Results) {
			return split{}
		}
		m.add(live, e.in(b, cellValue(ret.Results[index]), of))
	}
	e.guessed = e.guessed || e.fn != nil && e.fn.guessed
	return m.split()
}

// in evaluates a value where a block uses it. Behind a loop, a variable of its head
// is what a turn has made of it.
func (e *eval) in(b *ssa.BasicBlock, v ssa.Value, of func(ssa.Value) split) split {
	if p, ok := v.(*ssa.Phi); ok && !e.active[p] {
		if l := e.headed(p.Block(), b); l != nil {
			return e.mergedFrom(p, of, l)
		}
	}
	return of(v)
}

// merged merges what the edges of a phi say.
func (e *eval) merged(p *ssa.Phi, of func(ssa.Value) split) split { return e.mergedFrom(p, of, nil) }

// mergedFrom merges what the edges of a phi say that come from a loop; nil stands
// for all of them.
func (e *eval) mergedFrom(p *ssa.Phi, of func(ssa.Value) split, l *dataflow.Loop) split {
	e.flows++
	if e.active[p] {
		return split{}
	}
	e.active[p] = true
	defer delete(e.active, p)
	var m merger
	for i, v := range p.Edges {
		pred := p.Block().Preds[i]
		if v == ssa.Value(p) || l != nil && !l.Blocks[pred] {
			continue
		}
		if live := e.live(p.Block(), pred); !live.Empty() {
			m.add(live, e.in(p.Block(), v, of))
		}
		e.led(pred)
	}
	return m.split()
}

// led notes what the branches look at that lead through a block: of a condition
// in several parts, all but the last are branches.
func (e *eval) led(b *ssa.BasicBlock) {
	br := dataflow.IfOf(b)
	if br == nil && len(b.Preds) == 1 {
		br = dataflow.IfOf(b.Preds[0])
	}
	if br != nil && e.depth == 0 {
		e.cond(br.Cond)
	}
}

// enters reports whether a function of the package may depend on the status:
// it looks at one, or is handed one.
func (e *eval) enters(fn *ssa.Function, args []ssa.Value) bool {
	if e.depth >= evalDepth {
		return false
	}
	return e.cert || e.j.touches(fn) || slices.ContainsFunc(args, func(a ssa.Value) bool {
		if op, _ := e.handedFunc(a); op != nil {
			return e.j.touches(op)
		}
		if !dataflow.IsInteger(a.Type()) {
			return false
		}
		n := e.num(a)
		return n != nil && !n.fixed
	})
}

// given returns what the turn before, or the caller, makes of a phi.
func (e *eval) given(p *ssa.Phi) (known, bool) {
	if e.turn == nil || e.turn.given == nil {
		return known{}, false
	}
	k, ok := e.turn.given[p]
	if ok {
		e.flows++ // another turn gives it another value
	}
	return k, ok
}
