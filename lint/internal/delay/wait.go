package delay

import (
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Wait is one place of a region that lets time pass before another attempt: a
// sleep, a receive from a timer, a helper that does either.
// D and Fact exclude each other; when both are nil, the length is unknown and
// the region is not judged by it.
type Wait struct {
	Instr  ssa.Instruction
	D      ssa.Value  // how long; nil when the place does not say
	Ticker bool       // a tick of a ticker, which runs on its own
	Sleep  bool       // time.Sleep itself, deaf to any context
	Fact   *fact.Wait // how long, when a helper decides
	After  *ssa.Call  // time.After or NewTimer behind a channel wait
}

// waitWord marks functions that let time pass, by their name. Those in notAWait
// wait for something other than time, and purelyCalc marks names that compute a
// wait and leave it to their caller.
var (
	waitWord = regexp.MustCompile(`(?i)(sleep|wait|pause|delay|backoff)`)
	notAWait = map[string]bool{
		"sync": true, "os/exec": true, "golang.org/x/sync/errgroup": true, "os": true, "syscall": true,
		"golang.org/x/time/rate": true,
	} // a limiter paces, it does not wait between attempts
	purelyCalc = regexp.MustCompile(`(?i)^(get|calc|calculate|compute|next|new|with|set|default|max|min|initial|exponential|parse|is|has|should)`)
)

// WaitOf returns the wait that in is, or nil. In a select, only a case that goes
// on with the loop is a wait: one that leaves is a limit in time.
func WaitOf(s *fact.Scope, in ssa.Instruction, l *dataflow.Loop) *Wait {
	switch in := in.(type) {
	case *ssa.Call:
		return waitCall(s, in)
	case *ssa.UnOp:
		if in.Op == token.ARROW && dataflow.IsTimeChan(in.X.Type()) {
			return chanWait(s, in, in.X, l)
		}
	case *ssa.Select:
		for n, st := range in.States {
			if st.Dir == types.RecvOnly && dataflow.IsTimeChan(st.Chan.Type()) && dataflow.CaseStays(in, n, l) {
				return chanWait(s, in, st.Chan, l)
			}
		}
	}
	return nil
}

// waitCall recognizes time.Sleep, helpers whose summary says that they wait,
// and functions that by name and signature sleep for a duration.
// A name alone is weak evidence, so it comes last and must agree with the
// signature.
func waitCall(s *fact.Scope, c *ssa.Call) *Wait {
	com := c.Common()
	name := dataflow.CalleeName(com)
	switch {
	case dataflow.Calls(c, "time", "Sleep"):
		return &Wait{Instr: c, D: com.Args[0], Sleep: true}
	case dataflow.CalleePkg(com) == "time":
		return nil
	}
	// A helper that waits for its parameter is a sleep by another name. One that
	// decides by itself counts when it is called for its wait: by its name, or
	// because it does little else.
	if sum := s.Known.Of(com); sum != nil && sum.Wait != nil {
		if sum.Wait.Param >= 0 && sum.Wait.Param < len(com.Args) {
			return &Wait{Instr: c, D: com.Args[sum.Wait.Param]}
		}
		if waitWord.MatchString(name) || sum.Wait.Bare {
			return &Wait{Instr: c, Fact: sum.Wait}
		}
	}
	if !waitWord.MatchString(name) || purelyCalc.MatchString(name) ||
		notAWait[dataflow.CalleePkg(com)] || !dataflow.TellsNothing(com.Signature()) {
		return nil
	}
	// What is known of the function ends here; its name and signature say that it
	// waits for the duration that it is given.
	w := &Wait{Instr: c}
	for _, a := range com.Args {
		if dataflow.IsDuration(a.Type()) && w.D == nil {
			w.D = a
		}
	}
	for _, a := range com.Args {
		if !dataflow.IsConst(a) && !dataflow.IsDuration(a.Type()) && dataflow.IsInteger(a.Type()) {
			w.D = nil // an attempt number, by which the helper may scale the wait
		}
	}
	return w
}

// chanWait reads off how long a receive from a clock's channel waits. A channel
// that was made before the loop fires once: it limits the whole loop, unless
// its timer is reset for each attempt. What cannot be followed is a wait of
// unknown length.
func chanWait(s *fact.Scope, in ssa.Instruction, ch ssa.Value, l *dataflow.Loop) *Wait {
	w := &Wait{Instr: in}
	// The channel of a timer in a field of a struct is a few steps away; the bound
	// ends cycles through variables.
	for range 6 {
		switch v := ch.(type) {
		case *ssa.Call:
			if l != nil && !l.Contains(v) && dataflow.CalleeName(v.Common()) == "After" {
				return nil // made before the loop: a limit in all, not a pause
			}
			return afterCall(w, v, l)
		case *ssa.UnOp:
			if fa, ok := v.X.(*ssa.FieldAddr); ok {
				ch = fa.X
				if dataflow.IsNamed(ch.Type(), "time", "Ticker") {
					w.Ticker = true
				}
				if r := reset(ch, l); r != nil {
					w.D, w.After = r.Common().Args[1], r
					return w
				}
				continue
			}
			// The channel or the timer is kept in a variable.
			st := s.StoresTo(v.X)
			if len(st) == 0 {
				return w
			}
			ch = st[len(st)-1].Val
		case *ssa.ChangeType:
			ch = v.X
		default:
			return w
		}
	}
	return w
}

// afterCall reads the duration off time.After(d), time.NewTimer(d) and the
// like of other clocks.
// Test clocks copy the names of package time, so the name decides and not the
// package.
func afterCall(w *Wait, c *ssa.Call, l *dataflow.Loop) *Wait {
	switch dataflow.CalleeName(c.Common()) {
	case "NewTicker", "Tick", "Ticker":
		w.Ticker = true
	case "NewTimer", "After", "Timer":
		// It fires once, for the whole loop.
		if l != nil && !l.Contains(c) && reset(c, l) == nil {
			return nil
		}
	default:
		return w
	}
	for _, a := range c.Common().Args {
		if dataflow.IsDuration(a.Type()) {
			w.D, w.After = a, c
		}
	}
	return w
}

// reset finds a Reset of the timer t inside l, or nil.
// A timer that is reset in the loop waits anew for each attempt, although it was
// made once.
func reset(t ssa.Value, l *dataflow.Loop) *ssa.Call {
	for c := range dataflow.Refs[*ssa.Call](t) {
		if l.Contains(c) && dataflow.CalleeName(c.Common()) == "Reset" && len(c.Common().Args) == 2 {
			return c
		}
	}
	return nil
}
