package delay

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// clock follows a channel of a clock, or a timer, back to what started it.
type clock struct {
	s     *fact.Scope
	l     *dataflow.Loop
	in    ssa.Instruction // that waits
	tick  bool
	seen  map[ssa.Value]bool
	waits []*Wait
}

// clockWaits reads off how long a receive from a clock's channel waits. A
// channel that was made before the loop fires once: it limits the whole loop,
// unless its timer is reset for each attempt. What cannot be followed is a wait
// of unknown length. A timer that several places of the loop set is a wait of
// each of them.
func clockWaits(s *fact.Scope, in ssa.Instruction, ch ssa.Value, l *dataflow.Loop) []*Wait {
	c := &clock{s: s, l: l, in: in, seen: map[ssa.Value]bool{}}
	c.follow(ch)
	for _, w := range c.waits {
		w.Ticker = w.Ticker || c.tick
	}
	return c.waits
}

// follow goes from a channel or a timer to where it was made. Twenty values are
// more than a timer in a field of a struct needs.
func (c *clock) follow(ch ssa.Value) {
	if c.seen[ch] || len(c.seen) > 20 {
		return
	}
	c.seen[ch] = true
	switch v := ch.(type) {
	case *ssa.Const: // a nil channel, which never fires
	case *ssa.Call:
		if t := channelOf(v.Common()); t != nil {
			c.timer(t)
			return
		}
		c.started(v)
	case *ssa.Phi:
		for _, e := range v.Edges {
			c.follow(e)
		}
	case *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface:
		c.follow(dataflow.Operand(v))
	case *ssa.UnOp:
		if v.Op == token.MUL {
			c.load(v)
			return
		}
		c.unknown()
	default:
		c.unknown()
	}
}

// load follows the channel of a timer to the timer, and a variable to what is
// stored in it. A timer that the loop resets waits anew for each attempt,
// although it was made once, wherever that was.
func (c *clock) load(v *ssa.UnOp) {
	fa, ok := v.X.(*ssa.FieldAddr)
	timer := ok && isTimer(fa.X)
	if !timer {
		stores := c.s.StoresTo(v.X)
		if len(stores) == 0 {
			c.unknown()
			return
		}
		for _, st := range stores {
			c.follow(st.Val)
		}
		return
	}
	c.tick = c.tick || dataflow.IsNamed(fa.X.Type(), "time", "Ticker")
	c.timer(fa.X)
}

// timer follows a timer to what the loop resets it to, or to where it was made.
func (c *clock) timer(t ssa.Value) {
	if resets := resets(c.s.Fn, t, c.l); len(resets) > 0 {
		for _, r := range resets {
			args := r.Common().Args
			c.waits = append(c.waits, &Wait{Instr: c.in, D: args[len(args)-1], After: r})
		}
		return
	}
	c.follow(t)
}

// channelOf returns the timer whose channel a call yields, as the timers of other
// clocks than that of package time do, or nil.
func channelOf(com *ssa.CallCommon) ssa.Value {
	switch dataflow.CalleeName(com) {
	case "C", "Chan", "Channel":
	default:
		return nil
	}
	switch {
	case com.IsInvoke() && len(com.Args) == 0:
		return com.Value
	case com.Signature().Recv() != nil && len(com.Args) == 1:
		return com.Args[0]
	}
	return nil
}

// unknown notes a wait that does not say how long it is.
func (c *clock) unknown() { c.waits = append(c.waits, &Wait{Instr: c.in}) }

// started reads the duration off time.After(d), time.NewTimer(d) and whatever
// else yields a clock's channel or a timer for a duration: test clocks, pools of
// timers and fields for tests copy the names of package time or not. A function
// of the package is judged by what it returns.
func (c *clock) started(call *ssa.Call) {
	com := call.Common()
	name := dataflow.CalleeName(com)
	ticks := name == "NewTicker" || name == "Tick" || name == "Ticker" || dataflow.IsNamed(call.Type(), "time", "Ticker")
	// It fires once, for the whole loop.
	if !ticks && c.l != nil && !c.l.Contains(call) && len(resets(c.s.Fn, call, c.l)) == 0 {
		if !slices.ContainsFunc(com.Args, func(a ssa.Value) bool { return dataflow.IsDuration(a.Type()) }) {
			c.unknown()
		}
		return
	}
	w := &Wait{Instr: c.in, Ticker: ticks}
	c.waits = append(c.waits, w)
	if sum := c.s.Known.Of(com); sum != nil && sum.Clock != nil {
		w.Ticker = w.Ticker || sum.Clock.Tick
		if p := sum.Clock.Param; p >= 0 && p < len(com.Args) {
			w.D, w.After = com.Args[p], call
		} else {
			w.Fact, w.After = sum.Clock, call
		}
		return
	}
	for _, a := range com.Args {
		if dataflow.IsDuration(a.Type()) {
			w.D, w.After = a, call
		}
	}
}

// isTimer reports whether v is a timer or a ticker of package time, or a pointer
// to one. The channels of other clocks are yielded by their methods.
func isTimer(v ssa.Value) bool {
	return dataflow.IsNamed(v.Type(), "time", "Ticker") || dataflow.IsNamed(v.Type(), "time", "Timer")
}

// resets returns the calls in l that reset the timer t: the value itself, or the
// variable that it is kept in.
func resets(fn *ssa.Function, t ssa.Value, l *dataflow.Loop) (found []*ssa.Call) {
	if l == nil {
		return nil
	}
	for c := range dataflow.InstrsIn[*ssa.Call](fn, l) {
		com := c.Common()
		if dataflow.CalleeName(com) != "Reset" {
			continue
		}
		recv := com.Value
		if !com.IsInvoke() && len(com.Args) > 0 {
			recv = com.Args[0]
		}
		if n := len(com.Args); n > 0 && dataflow.IsDuration(com.Args[n-1].Type()) && dataflow.SameVariable(recv, t) {
			found = append(found, c)
		}
	}
	return found
}

// Clock says when the channel or the timer that a function returns fires, or is
// nil: after one of its parameters, or after a time of its own.
func Clock(s *fact.Scope) *fact.Wait {
	res := s.Fn.Signature.Results()
	if res.Len() != 1 || !dataflow.IsTimeChan(res.At(0).Type()) && !dataflow.IsNamed(res.At(0).Type(), "time", "Timer") {
		return nil
	}
	var found *fact.Wait
	for ret := range dataflow.Instrs[*ssa.Return](s.Fn) {
		for _, w := range clockWaits(s, ret, ret.Results[0], nil) {
			if w.D == nil && w.Fact == nil || found != nil {
				return nil
			}
			found = OfFunc(s, w)
			found.Tick = w.Ticker
		}
	}
	return found
}
