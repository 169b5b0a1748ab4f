package retry

import (
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/eval"
)

// find returns the retries of a function: of its loops, inner ones first, and of its
// calls to itself.
func (p *Package) find(fn *ssa.Function) (found []*Retry) {
	loops, innermost := eval.Loops(fn)
	taken := map[*ssa.Call]bool{}
	for _, l := range loops {
		r := p.inLoop(fn, l, innermost, taken)
		if r == nil && ablate.On("restarts") {
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
	if ablate.On("recursion") && callsItself(fn) {
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
	if fails(c.Common()) {
		return true
	}
	return eval.Is(res.At(res.Len()-1).Type(), types.IsBoolean) && boolWord.MatchString(eval.CalleeName(c.Common()))
}

// boolWord marks functions that do something and may fail at it. The list is short:
// a bool says far more often "there is none" than "it failed".
var boolWord = regexp.MustCompile(`(?i)^(try)?(send|post|publish|push|upload|deliver|submit|connect|reconnect|dial|fetch|download|call|do|register|notify)`)

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
	r.Refuses, r.WaitFirst = main.refuses && !main.pure, main.first
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

// callsItself reports whether a function calls itself, or another one that calls it.
func callsItself(fn *ssa.Function) bool {
	return slices.ContainsFunc(callees(fn), func(g *ssa.Function) bool {
		return g == fn || g.Pkg == fn.Pkg && slices.Contains(callees(g), fn)
	})
}

// callees are the functions that a function calls, by a timer too.
func callees(fn *ssa.Function) (all []*ssa.Function) {
	for c := range Calls(fn) {
		if CallsTo(c.Common(), "time", "AfterFunc") {
			if f := FuncOf(c.Common().Args[1]); f != nil && f.Parent() != nil {
				all = append(all, callees(f)...)
			} else if f != nil {
				all = append(all, f)
			}
		} else if f := eval.Static(c.Common()); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// sameLoop reports whether two loops, of one computation or of two, are the same.
func sameLoop(a, b *eval.Loop) bool { return a != nil && b != nil && a.Header == b.Header }

// mayWait reports whether something lets time pass between attempts that seem to follow
// each other at once: another of the operations does, or one waits by itself, goes to
// another server, or is attempted in an inner loop.
func (p *Package) mayWait(fn *ssa.Function, l *eval.Loop, all []*attempt) bool {
	_, innermost := eval.Loops(fn)
	for c := range Calls(fn) {
		if l != nil && l.Contains(c) && eval.Pauses(eval.CalleeName(c.Common())) {
			return true
		}
	}
	for _, a := range all {
		for _, ways := range a.turns {
			if slices.ContainsFunc(ways, func(w eval.Waits) bool { return len(w.Of) > 0 }) {
				return true
			}
		}
		if callee := eval.Static(a.op.Common()); callee != nil && pauses(callee, map[*ssa.Function]bool{}) {
			return true
		}
		if f := p.fact(a.op.Common()); f != nil && f.Wait != nil {
			return true
		}
		if l != nil && (!sameLoop(innermost[a.op.Block()], l) || usesAny(a.op, obtained(fn, l))) {
			return true
		}
	}
	return false
}

// pauses reports whether a function, or what it calls, lets time pass other than between
// its own attempts. seen are those that were asked before.
func pauses(fn *ssa.Function, seen map[*ssa.Function]bool) bool {
	if seen[fn] {
		return false
	}
	seen[fn] = true
	_, innermost := eval.Loops(fn)
	for c := range Calls(fn) {
		if innermost[c.Block()] != nil {
			continue
		}
		callee := eval.Static(c.Common())
		if letsTimePass(c.Common()) || callee != nil && pauses(callee, seen) {
			return true
		}
	}
	return false
}

// letsTimePass reports whether a call waits, or makes what is waited for.
func letsTimePass(c *ssa.CallCommon) bool {
	return CallsTo(c, "time", "Sleep", "After", "NewTimer", "Reset") || eval.Pauses(eval.CalleeName(c)) && eval.CalleePkg(c) != "sync"
}
