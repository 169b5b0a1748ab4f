package retryloop

import (
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
)

// sides are the blocks that the failures and the successes of a region lead to.
// A turn of a region that goes on after a success passes one of them.
type sides struct {
	l                    *dataflow.Loop
	tests                []*Test
	onFailure, onSuccess []map[*ssa.BasicBlock]bool
}

// side says which way an edge is taken.
type side int

const (
	either side = iota
	failed
	succeeded
)

// of returns the side on which control goes from one block to another.
func (s *sides) of(from, to *ssa.BasicBlock) side {
	for _, t := range s.tests {
		if t.If.Block() != from || t.fail().To() == t.ok().To() {
			continue
		}
		switch to {
		case t.fail().To():
			return failed
		case t.ok().To():
			return succeeded
		}
	}
	return s.at(from)
}

// at returns the side that a block belongs to.
func (s *sides) at(b *ssa.BasicBlock) side {
	onFailure, onSuccess := anyHas(s.onFailure, b), anyHas(s.onSuccess, b)
	switch {
	case onFailure && !onSuccess:
		return failed
	case onSuccess && !onFailure:
		return succeeded
	}
	return either
}

// regionWaits returns the waits between a failure and the next attempt. In a
// region that goes on after success, a wait that success meets too is a tick,
// which paces the work whether it fails or not; unless the failure has set how
// long it is. One that goes on only where an answer is not accepted waits for
// both alike.
// An operation that waits as well, such as a long poll, is no wait of its own.
func (f *finder) regionWaits(r *Region, s *sides) []*delay.Wait {
	var waits []*delay.Wait
	for _, b := range f.Fn.Blocks {
		if !r.Loop.Blocks[b] || !f.ownBlock(b, r.Loop) {
			continue
		}
		for _, in := range b.Instrs {
			if c, ok := in.(*ssa.Call); ok && slices.Contains(r.Ops, c) || r.betweenSteps(in) {
				continue
			}
			for _, w := range delay.WaitsOf(f.Scope, in, r.Loop) {
				switch {
				case r.Pure || r.Refuses || s.at(w.Set(r.Loop).Block()) == failed:
					waits = append(waits, w)
				case !w.Ticker:
					for _, d := range f.setByFailure(w.D, s) {
						waits = append(waits, &delay.Wait{Instr: w.Instr, D: d, After: w.After, Sleep: w.Sleep})
					}
				}
			}
		}
	}
	// What waits for no time at all is a state of a machine, or a pause that is
	// switched off.
	return slices.DeleteFunc(waits, func(w *delay.Wait) bool {
		n, ok := dataflow.ConstInt(w.D)
		return ok && n == 0
	})
}

// betweenSteps reports whether in comes after the success of one operation of a
// turn and before another: a pause between two steps, which no failure leads to.
func (r *Region) betweenSteps(in ssa.Instruction) bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool {
		ok := t.ok().To()
		if len(ok.Preds) != 1 || !ok.Dominates(in.Block()) {
			return false
		}
		return slices.ContainsFunc(r.Ops, func(op *ssa.Call) bool {
			return !slices.Contains(t.Ops, op) && ok.Dominates(op.Block()) && r.leadsTo(in, op)
		})
	})
}

// leadsTo reports whether one instruction may run before another in one turn.
func (r *Region) leadsTo(from, to ssa.Instruction) bool {
	if from.Block() == to.Block() {
		return dataflow.Before(from, to)
	}
	turn, _ := r.Loop.Walk(from.Block(), nil)
	return turn[to.Block()]
}

// setByFailure returns how long a wait is after a failure when a success leaves
// it otherwise: wait = 5 * time.Second on the one path and wait = 0 on the other,
// or a backoff that a success resets. It is nil when both wait alike.
func (f *finder) setByFailure(d ssa.Value, s *sides) []ssa.Value {
	if d == nil {
		return nil
	}
	if p, ok := dataflow.Strip(d).(*ssa.Phi); ok {
		values := f.failureValues(p, s)
		if len(values) > 0 && !slices.ContainsFunc(values, func(v ssa.Value) bool { return !dataflow.IsConst(v) }) {
			return values
		}
		if len(values) > 0 || slices.ContainsFunc(p.Edges, func(e ssa.Value) bool { return f.givenFailure(e, s) }) {
			return []ssa.Value{d}
		}
		return nil
	}
	if f.dependsOnSide(d, s, 0) {
		return []ssa.Value{d}
	}
	return nil
}

// failureValues returns the values that a merged variable has after a failure
// and only then; nil when it is the same after a success.
func (f *finder) failureValues(p *ssa.Phi, s *sides) (values []ssa.Value) {
	var others []ssa.Value
	seen := map[*ssa.Phi]bool{}
	var visit func(p *ssa.Phi)
	visit = func(p *ssa.Phi) {
		if seen[p] {
			return
		}
		seen[p] = true
		for i, e := range p.Edges {
			from := p.Block().Preds[i]
			if !s.l.Blocks[from] {
				continue // what the variable began with
			}
			// A merge below the tests belongs to both of them.
			q, merged := dataflow.Strip(e).(*ssa.Phi)
			way := s.of(from, p.Block())
			switch {
			case merged && s.l.Contains(q) && q.Block() != s.l.Header && way == either:
				visit(q)
			case way == failed:
				values = append(values, e)
			default:
				others = append(others, e)
			}
		}
	}
	if !s.l.Contains(p) {
		return nil
	}
	visit(p)
	// Some success at least must wait otherwise.
	if !slices.ContainsFunc(others, func(o ssa.Value) bool {
		return !slices.ContainsFunc(values, func(v ssa.Value) bool { return sameValue(o, v) })
	}) {
		return nil
	}
	return values
}

// sameValue reports whether two values are one, or equal constants.
func sameValue(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	n, isInt := dataflow.ConstInt(a)
	m, areInt := dataflow.ConstInt(b)
	return isInt && areInt && n == m
}

// resetWord marks methods that take a backoff back to its start.
var resetWord = regexp.MustCompile(`(?i)^(reset|clear|success)`)

// dependsOnSide reports whether a duration is computed from something that a
// failure sets and a success does not: a count of failures, a field that only
// one of them stores to, a policy that a success resets.
func (f *finder) dependsOnSide(v ssa.Value, s *sides, depth int) bool {
	if depth > 4 {
		return false
	}
	deeper := func(v ssa.Value) bool { return f.dependsOnSide(v, s, depth+1) }
	switch v := dataflow.Strip(v).(type) {
	case *ssa.Phi:
		return len(f.failureValues(v, s)) > 0
	case *ssa.BinOp:
		return deeper(v.X) || deeper(v.Y)
	case *ssa.Extract:
		return deeper(v.Tuple)
	case *ssa.UnOp:
		onFailure, onSuccess := false, false
		for _, st := range f.StoresTo(v.X) {
			onFailure = onFailure || s.at(st.Block()) == failed
			onSuccess = onSuccess || s.at(st.Block()) == succeeded
		}
		return onFailure || onSuccess
	case *ssa.Call:
		com := v.Common()
		if f.givenFailure(v, s) || slices.ContainsFunc(com.Args, deeper) {
			return true
		}
		recv := com.Value
		if !com.IsInvoke() {
			if com.Signature().Recv() == nil || len(com.Args) == 0 {
				return false
			}
			recv = com.Args[0]
		}
		return f.resetOnSuccess(recv, s)
	}
	return false
}

// givenFailure reports whether v is what a call makes of the error of an
// operation: a policy that is asked after every turn, and told how it went.
func (f *finder) givenFailure(v ssa.Value, s *sides) bool {
	c, ok := v.(*ssa.Call)
	return ok && slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool {
		return implementsError(a) && slices.ContainsFunc(f.Origins(a, s.l), func(op *ssa.Call) bool {
			return slices.ContainsFunc(s.tests, func(t *Test) bool { return slices.Contains(t.Ops, op) })
		})
	})
}

// resetOnSuccess reports whether only a success resets the value recv.
func (f *finder) resetOnSuccess(recv ssa.Value, s *sides) bool {
	for c := range dataflow.InstrsIn[*ssa.Call](f.Fn, s.l) {
		com := c.Common()
		if !resetWord.MatchString(dataflow.CalleeName(com)) || s.at(c.Block()) != succeeded {
			continue
		}
		of := com.Value
		if !com.IsInvoke() && len(com.Args) > 0 {
			of = com.Args[0]
		}
		if dataflow.SameVariable(of, recv) {
			return true
		}
	}
	return false
}
