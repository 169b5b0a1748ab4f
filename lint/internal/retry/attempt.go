package retry

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// attempt is what came of carrying out one operation.
type attempt struct {
	op      *ssa.Call
	again   bool
	pure    bool
	refuses bool
	turns   [][]eval.Waits // the ways between attempts, by turn
	first   bool
}

// scenes are the failures that are tried, in this order: the first that leads to
// another attempt counts.
func scenes(op *ssa.Call) []eval.Scene {
	all := []eval.Scene{{Outcome: eval.Lost}, {Outcome: eval.Answered, Status: 503}, {Outcome: eval.Answered, Status: 429}, {Outcome: eval.Answered, Status: 500}, {Outcome: eval.Coded, Status: 14}}
	for v := range op.Common().Signature().Results().Variables() {
		if eval.IsResponse(v.Type()) {
			return all[:4]
		}
		if eval.IsError(v.Type()) {
			return all
		}
	}
	return all[:1]
}

// attempt carries out one operation in its failures and in its success.
func (p *Package) attempt(fn *ssa.Function, l *eval.Loop, op *ssa.Call) *attempt {
	a := &attempt{op: op}
	var exits map[*ssa.BasicBlock]bool // of the failure
	for _, s := range scenes(op) {
		m := p.Carry(fn, l, op, s)
		_, again := m.Again()
		if own := eval.Static(op.Common()); !again && s.Outcome == eval.Answered && own != nil && len(own.Blocks) > 0 {
			s.Deep = true // it may yield an error beside the response
			m = p.Carry(fn, l, op, s)
			again, _ = m.Again()
			again = again && !m.Over()
		}
		if s.Outcome == eval.Lost && !again && !m.Asked && !Responds(op) {
			return a // which no status would change
		}
		if !again {
			continue
		}
		exits = m.Exits()
		a.again = true
		for t := 1; t < eval.MaxTurns; t++ {
			if !m.Turns[t].Reached {
				continue
			}
			for len(a.turns) < t {
				a.turns = append(a.turns, nil)
			}
			a.turns[t-1] = append(a.turns[t-1], m.Turns[t].Waits...)
		}
		a.first = a.first || slices.ContainsFunc(m.Turns[0].Waits, func(w eval.Waits) bool {
			return slices.ContainsFunc(w.Of, func(x eval.Wait) bool { return !x.Weak && (l == nil || l.Contains(x.At)) })
		})
		if s.Outcome == eval.Lost && !Responds(op) {
			break
		}
	}
	if !a.again {
		return a
	}
	ok, certain, possible := p.succeed(fn, l, op)
	a.pure = !possible
	if !possible {
		return a
	}
	// Only what waits after a failure alone makes a retry of it.
	onSuccess := map[ssa.Instruction]bool{}
	for _, w := range ok.Turns[1].Waits {
		for _, x := range w.Of {
			onSuccess[x.At] = true
		}
	}
	byFailure := make([][]eval.Waits, len(a.turns))
	for t, ways := range a.turns {
		for _, w := range ways {
			if slices.ContainsFunc(w.Of, func(x eval.Wait) bool { return !onSuccess[x.At] && !x.Weak }) {
				byFailure[t] = append(byFailure[t], w)
			}
		}
	}
	switch {
	case len(byFailure) > 0 && len(byFailure[0]) > 0:
		a.turns = byFailure
		// A success may end it all the same, where a failure does not.
		a.pure = certain && endsMore(ok, exits)
	case certain && len(a.turns) > 1 && !sameWaits(a.turns[1], ok.Turns[2].Waits):
		// it waits at the same place, but not as long
	case certain:
		a.turns = nil
	default:
		a.refuses = true
	}
	return a
}

// succeed carries out one operation in its success, and says whether another attempt
// follows it for certain, or by what is not known. What ends it where a caller is after
// one status of several, or says so by more than an error, is its success.
func (p *Package) succeed(fn *ssa.Function, l *eval.Loop, op *ssa.Call) (first *eval.Machine, certain, possible bool) {
	first = p.Carry(fn, l, op, eval.Scene{Outcome: eval.Success, Status: 200})
	if certain, possible = first.Again(); !possible {
		return first, false, false
	}
	var others []eval.Scene
	if first.Looked {
		others = append(others, eval.Scene{Outcome: eval.Success, Status: 201}, eval.Scene{Outcome: eval.Success, Status: 202}, eval.Scene{Outcome: eval.Success, Status: 204}, eval.Scene{Outcome: eval.Success, Status: 206})
	}
	if p.BoundaryOf(op.Common()) == Remote {
		others = append(others, eval.Scene{Outcome: eval.Success, Status: 200, Deep: true})
	}
	for _, s := range others {
		m := p.Carry(fn, l, op, s)
		if _, again := m.Again(); !again && !m.Over() {
			return m, false, false
		}
	}
	return first, certain, possible
}

// Carry carries out a function with one operation in a scene.
func (p *Package) Carry(fn *ssa.Function, l *eval.Loop, op *ssa.Call, s eval.Scene) *eval.Machine {
	m := &eval.Machine{Lib: p, Scene: s, Fn: fn, Loop: l, Op: op}
	m.Run()
	return m
}

// endsMore reports whether a success leaves the loop where a failure does not.
func endsMore(ok *eval.Machine, failed map[*ssa.BasicBlock]bool) bool {
	for b := range ok.Exits() {
		if !failed[b] {
			return true
		}
	}
	return false
}

// sameWaits reports whether two attempts wait for the same, whatever the way.
func sameWaits(a, b []eval.Waits) bool {
	names := map[string]int{}
	for _, w := range a {
		names[w.String()] |= 1
	}
	for _, w := range b {
		names[w.String()] |= 2
	}
	for _, in := range names {
		if in != 3 {
			return false
		}
	}
	return true
}

// Responds reports whether a call yields a response.
func Responds(op *ssa.Call) bool {
	for v := range op.Common().Signature().Results().Variables() {
		if eval.IsResponse(v.Type()) {
			return true
		}
	}
	return false
}
