package eval

import "golang.org/x/tools/go/ssa"

// time carries out package time: its clocks, and arithmetic of durations.
func (c *carrier) time(in ssa.CallInstruction, com *ssa.CallCommon, name string, recv Value, args []Value) (Value, bool) {
	at := in.(ssa.Instruction)
	switch name {
	case "Sleep":
		c.waits(at, args[0], false)
		return Tuple{}, true
	case "After":
		if com.Signature().Recv() == nil {
			return computed("after", args...), true
		}
	case "Tick":
		return computed("tick", args...), true
	case "NewTimer", "NewTicker":
		cell := c.fresh(at.(ssa.Value))
		c.s.set(cell+".D", args[0])
		c.s.set(cell+".C", Sym{Name: cell + ".C"})
		if name == "NewTicker" {
			c.s.set(cell+".ticker", Bool(true))
		}
		return Ptr{cell}, true
	case "Reset":
		if len(args) == 2 {
			for _, p := range ways(args[0]) {
				if cell, ok := cellOf(p); ok {
					c.s.set(cell+".D", args[1])
				}
			}
		}
		return Bool(true), true
	case "AfterFunc":
		c.waits(at, args[0], false)
		c.later(in, args[1])
		return Made{ID: "timer"}, true
	case "Now", "Since", "Until", "Parse":
		return c.guess(in, args, false), true
	case "Duration", "Seconds", "Milliseconds", "Round", "Truncate", "Nanoseconds", "Minutes", "Abs":
		if len(args) > 0 {
			return args[0], true
		}
	case "Sub": // how long until a time that the server may have named
		for _, a := range args {
			if _, ok := a.(Server); ok {
				return Server{}, true
			}
		}
	}
	return c.guess(in, args, false), true
}

// later carries out a function that a timer calls.
func (c *carrier) later(in ssa.CallInstruction, v Value) {
	f, ok := v.(Func)
	if !ok {
		return
	}
	fn, args := f.Fn, []Value(nil)
	if m := boundMethod(fn); m != nil && len(f.Free) == 1 {
		fn, args, f.Free = m, f.Free, nil
	}
	if c.repeatsItself(fn, args) {
		c.recur(fn, args)
	} else if len(fn.Blocks) > 0 {
		c.enter(in, fn, f.Free, args)
	}
}
