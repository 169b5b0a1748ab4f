package retryloop

import (
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"
)

// Wait is one place of a region that lets time pass.
type Wait struct {
	Instr  ssa.Instruction
	D      ssa.Value // how long; nil when the place does not say
	Ticker bool      // a tick of a ticker, which runs on its own
	Sleep  bool      // time.Sleep itself, deaf to any context
	Fact   *WaitFact // how long, when a helper decides
	After  *ssa.Call // time.After or NewTimer behind a channel wait
}

var (
	waitWord = regexp.MustCompile(`(?i)(sleep|wait|pause|delay|backoff)`)
	notAWait = map[string]bool{
		"sync": true, "os/exec": true, "golang.org/x/sync/errgroup": true, "os": true, "syscall": true,
		"golang.org/x/time/rate": true,
	} // a limiter paces, it does not wait between attempts
	purelyCalc = regexp.MustCompile(`(?i)^(get|calc|calculate|compute|next|new|with|set|default|max|min|initial|exponential|parse|is|has|should)`)
)

// waitOf returns the wait that in is, or nil.
func waitOf(s *Scope, in ssa.Instruction, l *Loop) *Wait {
	switch in := in.(type) {
	case *ssa.Call:
		return waitCall(s, in)
	case *ssa.UnOp:
		if in.Op == token.ARROW && isTimeChan(in.X.Type()) {
			return chanWait(s, in, in.X, l)
		}
	case *ssa.Select:
		for n, st := range in.States {
			if st.Dir == types.RecvOnly && isTimeChan(st.Chan.Type()) && caseStays(in, n, l) {
				return chanWait(s, in, st.Chan, l)
			}
		}
	}
	return nil
}

// waitCall recognizes time.Sleep, helpers whose summary says that they wait,
// and functions that by name and signature sleep for a duration.
func waitCall(s *Scope, c *ssa.Call) *Wait {
	com := c.Common()
	name := CalleeName(com)
	if CalleePkg(com) == "time" {
		if name == "Sleep" {
			return &Wait{Instr: c, D: com.Args[0], Sleep: true}
		}
		return nil
	}
	if sum := s.known.of(com); sum != nil && sum.Wait != nil {
		if sum.Wait.Param >= 0 && sum.Wait.Param < len(com.Args) {
			return &Wait{Instr: c, D: com.Args[sum.Wait.Param]}
		}
		if waitWord.MatchString(name) || sum.Wait.Bare {
			return &Wait{Instr: c, Fact: sum.Wait}
		}
	}
	if !waitWord.MatchString(name) || purelyCalc.MatchString(name) || notAWait[CalleePkg(com)] {
		return nil
	}
	if !tellsNothing(com.Signature()) {
		return nil
	}
	w := &Wait{Instr: c}
	for _, a := range com.Args {
		if isDuration(a.Type()) && w.D == nil {
			w.D = a
		}
	}
	for _, a := range com.Args {
		if _, isConst := a.(*ssa.Const); !isConst && !isDuration(a.Type()) && isInteger(a.Type()) {
			w.D = nil // an attempt number, by which the helper may scale the wait
		}
	}
	return w
}

func isInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// tellsNothing reports whether a function has no result but success or failure.
func tellsNothing(sig *types.Signature) bool {
	for v := range sig.Results().Variables() {
		b, ok := v.Type().Underlying().(*types.Basic)
		if !isError(v.Type()) && (!ok || b.Kind() != types.Bool) {
			return false
		}
	}
	return true
}

// isTimeChan reports whether t is a channel that only clocks send on.
func isTimeChan(t types.Type) bool {
	c, ok := t.Underlying().(*types.Chan)
	return ok && IsNamed(c.Elem(), "time", "Time")
}

// chanWait tells how long a receive from a clock's channel waits.
func chanWait(s *Scope, in ssa.Instruction, ch ssa.Value, l *Loop) *Wait {
	w := &Wait{Instr: in}
	for range 6 {
		switch v := ch.(type) {
		case *ssa.Call:
			if l != nil && !l.contains(v) && CalleeName(v.Common()) == "After" {
				return nil // made before the loop: a limit in all, not a pause
			}
			return afterCall(w, v, l)
		case *ssa.UnOp:
			if fa, ok := v.X.(*ssa.FieldAddr); ok {
				ch = fa.X
				if IsNamed(ch.Type(), "time", "Ticker") {
					w.Ticker = true
				}
				if r := reset(ch, l); r != nil {
					w.D, w.After = r.Common().Args[1], r
					return w
				}
				continue
			}
			st := s.storesTo(v.X)
			if len(st) == 0 {
				return w
			}
			ch = st[len(st)-1].Val
		case *ssa.ChangeType:
			ch = v.X
		case *ssa.Phi:
			return w
		default:
			return w
		}
	}
	return w
}

// afterCall reads the duration off time.After(d), time.NewTimer(d) and the
// like of other clocks.
func afterCall(w *Wait, c *ssa.Call, l *Loop) *Wait {
	switch CalleeName(c.Common()) {
	case "NewTicker", "Tick", "Ticker":
		w.Ticker = true
	case "NewTimer", "After", "Timer":
		if l != nil && !l.contains(c) && reset(c, l) == nil {
			return nil
		}
	default:
		return w
	}
	for _, a := range c.Common().Args {
		if isDuration(a.Type()) {
			w.D, w.After = a, c
		}
	}
	return w
}

// reset finds a Reset of the timer t inside l.
func reset(t ssa.Value, l *Loop) *ssa.Call {
	if t.Referrers() == nil {
		return nil
	}
	for _, ref := range *t.Referrers() {
		c, ok := ref.(*ssa.Call)
		if ok && l.contains(c) && CalleeName(c.Common()) == "Reset" && len(c.Common().Args) == 2 {
			return c
		}
	}
	return nil
}

// caseStays reports whether case n of a select goes on with the loop.
func caseStays(sel *ssa.Select, n int, l *Loop) bool {
	if l == nil || sel.Referrers() == nil {
		return true
	}
	for _, ref := range *sel.Referrers() {
		x, ok := ref.(*ssa.Extract)
		if !ok || x.Index != 0 || x.Referrers() == nil {
			continue
		}
		for _, u := range *x.Referrers() {
			cmp, ok := u.(*ssa.BinOp)
			if !ok || cmp.Op != token.EQL {
				continue
			}
			k, ok := cmp.Y.(*ssa.Const)
			if !ok || int(k.Int64()) != n {
				continue
			}
			for _, br := range *cmp.Referrers() {
				if i, ok := br.(*ssa.If); ok {
					_, back := l.walk(i.Block().Succs[0], nil)
					return back
				}
			}
		}
	}
	// The last case of a blocking select needs no comparison of its own.
	return true
}
