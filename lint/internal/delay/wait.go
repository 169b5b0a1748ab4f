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
	After  *ssa.Call  // time.After, NewTimer or Reset behind a channel wait
}

// Set returns the instruction that decides for the wait: the one that starts the
// clock, where it is in l, and otherwise the one that waits for it.
func (w *Wait) Set(l *dataflow.Loop) ssa.Instruction {
	if w.After != nil && l.Contains(w.After) {
		return w.After
	}
	return w.Instr
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

// WaitOf returns the wait that in is, or nil; the first of them, when a timer
// may have been set to several.
func WaitOf(s *fact.Scope, in ssa.Instruction, l *dataflow.Loop) *Wait {
	if waits := WaitsOf(s, in, l); len(waits) > 0 {
		return waits[0]
	}
	return nil
}

// WaitsOf returns the waits that in may be. In a select, only a case that goes
// on with the loop is a wait: one that leaves is a limit in time, and so is one
// of a function that waits for something else to come.
func WaitsOf(s *fact.Scope, in ssa.Instruction, l *dataflow.Loop) (waits []*Wait) {
	switch in := in.(type) {
	case *ssa.Call:
		if w := waitCall(s, in); w != nil {
			return []*Wait{w}
		}
	case *ssa.UnOp:
		if in.Op == token.ARROW && dataflow.IsTimeChan(in.X.Type()) {
			return clockWaits(s, in, in.X, l)
		}
	case *ssa.Select:
		if l == nil && obtains(in) {
			return nil
		}
		for n, st := range in.States {
			if st.Dir == types.RecvOnly && dataflow.IsTimeChan(st.Chan.Type()) && dataflow.CaseStays(in, n, l) {
				waits = append(waits, clockWaits(s, in, st.Chan, l)...)
			}
		}
	}
	return waits
}

// obtains reports whether a case of a select takes something from a channel that
// is used then. A mere signal, such as the end of a context, is not.
func obtains(sel *ssa.Select) bool {
	for x := range dataflow.Refs[*ssa.Extract](sel) {
		if x.Index >= 2 && !dataflow.IsNamed(x.Type(), "time", "Time") && len(*x.Referrers()) > 0 {
			return true
		}
	}
	return false
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
