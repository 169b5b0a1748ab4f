package retry

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// find returns the retries of a function: of its loops, inner ones first, and of its
// calls to itself.
func (p *Package) find(fn *ssa.Function) (found []*Retry) {
	loops, innermost := eval.Loops(fn)
	taken := map[*ssa.Call]bool{}
	for _, l := range loops {
		r := p.inLoop(fn, l, innermost, taken)
		if r == nil {
			r = p.restart(fn, l, innermost)
		}
		if r != nil {
			found = append(found, r)
			for c := range Calls(fn) {
				if l.Contains(c) {
					taken[c] = true
				}
			}
		}
	}
	if callsItself(fn) {
		if r := p.judge(fn, nil, p.candidates(fn, nil, nil, nil)); r != nil {
			found = append(found, r)
		}
	}
	return found
}

// inLoop judges one loop. Its operations are those of the loop itself, and of inner
// ones that retry nothing.
func (p *Package) inLoop(fn *ssa.Function, l *eval.Loop, innermost map[*ssa.BasicBlock]*eval.Loop, taken map[*ssa.Call]bool) *Retry {
	if accepts(fn, l) {
		return nil
	}
	ops := p.candidates(fn, l, innermost, taken)
	if len(ops) == 0 {
		return nil
	}
	if items := itemsOf(fn, l); len(items) > 0 {
		ops = slices.DeleteFunc(ops, func(c *ssa.Call) bool { return usesAny(c, items) })
	}
	return p.judge(fn, l, ops)
}

// candidates are the calls whose failure may be retried.
func (p *Package) candidates(fn *ssa.Function, l *eval.Loop, innermost map[*ssa.BasicBlock]*eval.Loop, taken map[*ssa.Call]bool) (ops []*ssa.Call) {
	for c := range Calls(fn) {
		if l != nil && (!l.Contains(c) || innermost[c.Block()] == nil) || taken[c] || ignored(c.Common()) || !mayFail(c) {
			continue
		}
		if l == nil && eval.Static(c.Common()) == fn {
			continue
		}
		ops = append(ops, c)
	}
	if len(ops) > 12 {
		slices.SortStableFunc(ops, func(a, b *ssa.Call) int { return int(p.BoundaryOf(b.Common())) - int(p.BoundaryOf(a.Common())) })
		ops = ops[:12]
	}
	return ops
}

// mayFail reports whether a call tells of its failure, and is asked for it: by an
// error, a response, or a bool of a function that does something.
func mayFail(c *ssa.Call) bool {
	res := c.Common().Signature().Results()
	if res.Len() == 0 || c.Referrers() == nil || len(*c.Referrers()) == 0 {
		return false
	}
	for v := range res.Variables() {
		if eval.IsError(v.Type()) || eval.IsResponse(v.Type()) {
			return true
		}
	}
	b, ok := res.At(res.Len() - 1).Type().Underlying().(*types.Basic)
	return ok && b.Kind() == types.Bool && boolWord.MatchString(eval.CalleeName(c.Common()))
}

// boolWord marks functions that do something and may fail at it. The list is short:
// a bool says far more often "there is none" than "it failed".
var boolWord = regexp.MustCompile(`(?i)^(try)?(send|post|publish|push|upload|deliver|submit|connect|reconnect|dial|fetch|download|call|do|register|notify)`)

// attempt is what came of carrying out one operation.
type attempt struct {
	op       *ssa.Call
	again    bool
	onStatus bool
	pure     bool
	refuses  bool
	goesOn   bool
	turns    [][]eval.Waits // the ways between attempts, by turn
	first    bool
}

// judge carries out each operation of a region, and puts together what the failing
// ones have in common; nil when none of them is retried.
func (p *Package) judge(fn *ssa.Function, l *eval.Loop, ops []*ssa.Call) *Retry {
	var all []*attempt
	for _, op := range ops {
		if a := p.attempt(fn, l, op); a != nil && a.again {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *attempt) int {
		return int(p.BoundaryOf(b.op.Common())) - int(p.BoundaryOf(a.op.Common()))
	})
	r := &Retry{Fn: fn, Loop: l, Pure: true}
	// An operation whose success ends the region is what it is about; the others are
	// on the way to it.
	if slices.ContainsFunc(all, func(a *attempt) bool { return a.pure }) {
		all = slices.DeleteFunc(all, func(a *attempt) bool { return !a.pure })
	} else {
		r.Pure = false
	}
	main := all[0]
	if !r.Pure && !main.refuses && l != nil {
		// The next item of a list, so many of them, the next of a queue: other work.
		if counted(fn, l) || itemLoop(l) || usesAny(main.op, obtained(fn, l)) {
			return nil
		}
	}
	r.OnStatus, r.Refuses, r.WaitFirst = main.onStatus, main.refuses && !main.pure, main.first
	for _, a := range all {
		r.Ops = append(r.Ops, a.op)
	}
	r.Weak = !slices.ContainsFunc(r.Ops, func(c *ssa.Call) bool { return fails(c.Common()) })
	r.Delay = p.delay(main)
	r.noteWaits(main)
	if r.Delay.Class == Immediate && p.mayWait(fn, l, all) {
		r.Delay.Class = Pluggable
	}
	p.describe(r)
	if !p.stands(r) {
		return nil
	}
	return r
}

// noteWaits notes the places that wait between the attempts.
func (r *Retry) noteWaits(a *attempt) {
	for _, ways := range a.turns {
		for _, w := range ways {
			for _, x := range w.Of {
				if !x.Weak && !slices.Contains(r.Waits, x.At) {
					r.Waits = append(r.Waits, x.At)
				}
			}
		}
	}
}

// fails reports whether a call tells of its failure by an error or a response.
func fails(c *ssa.CallCommon) bool {
	for v := range c.Signature().Results().Variables() {
		if eval.IsError(v.Type()) || eval.IsResponse(v.Type()) {
			return true
		}
	}
	return false
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
		if s.Outcome == eval.Lost && !again && !m.Asked && !hasResponse(op) {
			return a // which no status would change
		}
		if !again {
			continue
		}
		exits = m.Exits()
		if a.again = true; a.turns == nil {
			a.onStatus = s.Outcome != eval.Lost
		}
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
			return slices.ContainsFunc(w.Of, func(x eval.Wait) bool { return l == nil || l.Contains(x.At) })
		})
		if s.Outcome == eval.Lost && !hasResponse(op) {
			break
		}
	}
	if !a.again {
		return a
	}
	ok := p.Carry(fn, l, op, eval.Scene{Outcome: eval.Success})
	certain, possible := ok.Again()
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
		a.turns, a.goesOn = byFailure, true
		// A success may end it all the same, where a failure does not.
		a.pure = certain && endsMore(ok, exits)
	case certain && len(a.turns) > 1 && !sameWaits(a.turns[1], ok.Turns[2].Waits):
		a.goesOn = true // at the same place, but not as long
	case certain:
		a.turns, a.goesOn = nil, true
	default:
		a.refuses = true
	}
	return a
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

// endsMore reports whether a success leaves the loop where a failure does not.
func endsMore(ok *eval.Machine, failed map[*ssa.BasicBlock]bool) bool {
	for b := range ok.Exits() {
		if !failed[b] {
			return true
		}
	}
	return false
}

func hasResponse(op *ssa.Call) bool {
	for v := range op.Common().Signature().Results().Variables() {
		if eval.IsResponse(v.Type()) {
			return true
		}
	}
	return false
}

// Carry carries out a function with one operation in a scene.
func (p *Package) Carry(fn *ssa.Function, l *eval.Loop, op *ssa.Call, s eval.Scene) *eval.Machine {
	m := &eval.Machine{Lib: p, Scene: s, Fn: fn, Loop: l, Op: op}
	m.Run()
	return m
}

// stands reports whether what was found is a retry, and no loop that looks like one.
func (p *Package) stands(r *Retry) bool {
	if r.Weak && !(r.Spoken && r.Pure) {
		return false // a missing result may mean that there is nothing yet
	}
	waits := len(r.Waits) > 0
	switch {
	case r.Refuses:
		return r.Spoken
	case !r.Pure:
		return waits
	case !waits && r.Loop == nil:
		return r.Bound.Counter && r.Spoken
	case !waits:
		return r.Bound.Counter || r.Spoken
	}
	return true
}

// accepts reports whether a loop takes the next connection of a listener.
func accepts(fn *ssa.Function, l *eval.Loop) bool {
	for c := range Calls(fn) {
		if l.Contains(c) && strings.HasPrefix(eval.CalleeName(c.Common()), "Accept") {
			return true
		}
	}
	return false
}

// callsItself reports whether a function calls itself.
func callsItself(fn *ssa.Function) bool {
	for c := range Calls(fn) {
		if eval.Static(c.Common()) == fn {
			return true
		}
	}
	return false
}

// itemsOf are the values that a loop takes from a list, a map or a channel, one at
// each turn.
func itemsOf(fn *ssa.Function, l *eval.Loop) (items []ssa.Value) {
	for b := range l.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Next:
				items = append(items, in)
			case *ssa.IndexAddr:
				if turnIndex(in.Index, l) {
					items = append(items, in)
				}
			case *ssa.Index:
				if turnIndex(in.Index, l) {
					items = append(items, in)
				}
			}
		}
	}
	return items
}

// turnIndex reports whether a value is the number of the turn of a loop over a list:
// a phi of its head, or one more, that is compared with a length.
func turnIndex(v ssa.Value, l *eval.Loop) bool {
	if b, ok := v.(*ssa.BinOp); ok {
		if p, isPhi := b.X.(*ssa.Phi); isPhi && p.Block() == l.Header {
			return comparedWithLen(b)
		}
	}
	p, ok := v.(*ssa.Phi)
	return ok && p.Block() == l.Header && comparedWithLen(p)
}

func comparedWithLen(v ssa.Value) bool {
	for _, ref := range *v.Referrers() {
		if b, ok := ref.(*ssa.BinOp); ok {
			if c, ok := b.Y.(*ssa.Call); ok {
				if bi, ok := c.Common().Value.(*ssa.Builtin); ok && bi.Name() == "len" {
					return true
				}
			}
		}
	}
	return false
}

// usesAny reports whether a call depends on one of some values, through what is
// computed of them and stored.
func usesAny(c *ssa.Call, from []ssa.Value) bool {
	seen := map[ssa.Value]bool{}
	work := slices.Clone(from)
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[v] || v.Referrers() == nil {
			continue
		}
		seen[v] = true
		for _, ref := range *v.Referrers() {
			switch ref := ref.(type) {
			case *ssa.Call:
				if ref == c {
					return true
				}
				work = append(work, ref)
			case *ssa.Store:
				if ref.Val == v {
					work = append(work, ref.Addr)
					switch a := ref.Addr.(type) {
					case *ssa.FieldAddr:
						work = append(work, a.X)
					case *ssa.IndexAddr:
						work = append(work, a.X)
					}
				}
			case *ssa.Phi: // the item of another turn is another item
				if len(ref.Edges) < 4 {
					work = append(work, ref)
				}
			case ssa.Value:
				work = append(work, ref)
			}
		}
	}
	return false
}

// mayWait reports whether something lets time pass between attempts that seem to follow
// each other at once: another of the operations does, or one waits by itself, goes to
// another server, or is attempted in an inner loop.
func (p *Package) mayWait(fn *ssa.Function, l *eval.Loop, all []*attempt) bool {
	_, innermost := eval.Loops(fn)
	for _, a := range all {
		for _, ways := range a.turns {
			if slices.ContainsFunc(ways, func(w eval.Waits) bool { return len(w.Of) > 0 }) {
				return true
			}
		}
		if callee := eval.Static(a.op.Common()); callee != nil && p.Lively(callee) {
			return true
		}
		if f := p.fact(a.op.Common()); f != nil && f.Wait != nil {
			return true
		}
		if l != nil && (innermost[a.op.Block()] != l || usesAny(a.op, obtained(fn, l))) {
			return true
		}
	}
	return false
}

// obtained are the values that each turn of a loop takes anew: from a channel, or by a
// call that says so.
func obtained(fn *ssa.Function, l *eval.Loop) (all []ssa.Value) {
	for in := range InstrsOf[ssa.Instruction](fn) {
		if !l.Contains(in) {
			continue
		}
		switch in := in.(type) {
		case *ssa.UnOp:
			if in.Op == token.ARROW {
				all = append(all, in)
			}
		case *ssa.Call:
			if obtainWord.MatchString(eval.CalleeName(in.Common())) && !mayFail(in) {
				all = append(all, in)
			}
		}
	}
	return all
}

// obtainWord marks calls that yield another item or another server at each turn.
var obtainWord = regexp.MustCompile(`(?i)^(pick|next|acquire|select|choose|obtain|take|borrow|pop|dequeue|shift)|(next|any|random)(conn|client|node|host|peer|server|address|endpoint)?$`)

// counted reports whether the head of a loop counts its turns.
func counted(fn *ssa.Function, l *eval.Loop) bool {
	br, ok := l.Header.Instrs[len(l.Header.Instrs)-1].(*ssa.If)
	if !ok {
		return false
	}
	var b Bound
	b.exit(&Retry{Fn: fn, Loop: l}, br.Cond, 0)
	return b.Counter
}

// itemLoop reports whether each turn of a loop has an item of its own: of a list, a map
// or a channel.
func itemLoop(l *eval.Loop) bool {
	for _, in := range l.Header.Instrs {
		switch in := in.(type) {
		case *ssa.Next:
			return true
		case *ssa.UnOp:
			if in.Op == token.ARROW && in.CommaOk {
				return true
			}
		case *ssa.If:
			if b, ok := in.Cond.(*ssa.BinOp); ok {
				return turnIndex(b.X, l)
			}
		}
	}
	return false
}
