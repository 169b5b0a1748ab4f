package eval

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
)

// operation carries out the operation of the run, in its outcome.
func (c *carrier) operation(in *ssa.Call, args []Value) (v Value, goesOn bool) {
	turn := c.m.turn
	if turn < MaxTurns {
		t := &c.m.Turns[turn]
		t.Reached = true
		t.Args = joinArgs(t.Args, append(slices.Clip(args), c.val(in.Common().Value)))
		t.Waits = mergeWaits(t.Waits, c.s.waits)
	}
	if turn == MaxTurns-1 {
		return nil, false
	}
	c.s.waits = []Waits{{}}
	c.s.doubt, c.s.tried = false, true
	return c.outcome(in, args)
}

// sameBefore reports whether a call is the first attempt at the operation, ahead of the
// loop that repeats it.
func (c *carrier) sameBefore(in *ssa.Call) bool {
	op := c.m.Op
	if !ablate.On("before") || op == nil || c.m.Loop == nil || c.m.Loop.Contains(in) {
		return false
	}
	return Callee(in.Common()) != nil && Callee(in.Common()) == Callee(op.Common()) && feeds(in, c.m.Loop)
}

// feeds reports whether the head of a loop takes over what a call yields.
func feeds(v ssa.Value, l *Loop) bool {
	for _, ref := range *v.Referrers() {
		switch ref := ref.(type) {
		case *ssa.Phi:
			if ref.Block() == l.Header {
				return true
			}
		case *ssa.Extract:
			if feeds(ref, l) {
				return true
			}
		case *ssa.Store: // to a variable that the loop sets, too
			for _, other := range *ref.Addr.Referrers() {
				if st, ok := other.(*ssa.Store); ok && l.Contains(st) {
					return true
				}
			}
		}
	}
	return false
}

// outcome is what an attempt yields in the scene.
func (c *carrier) outcome(in *ssa.Call, args []Value) (v Value, goesOn bool) {
	if !c.m.Scene.Deep || !c.enterable(in.Common()) {
		if c.m.Scene.Deep {
			c.send(in, args)
		}
		c.fill(args)
		return c.m.result(in.Common()), true
	}
	c.m.inOp++
	defer func() { c.m.inOp-- }()
	v = c.apply(in, in.Common(), args)
	c.s.waits = []Waits{{}} // what the operation waits for is its own
	if c.m.Scene.Outcome == Answered || c.m.Scene.Outcome == Coded {
		v = settled(v)
	}
	return v, !c.m.over
}

// fill writes what the operation reads into variables that it is given as any: nobody
// knows what.
func (c *carrier) fill(args []Value) {
	if c.m.Scene.fails() {
		return
	}
	for _, a := range args {
		i, _ := a.(Iface)
		if p, ok := i.V.(Ptr); ok && strings.HasPrefix(p.Cell, "new ") {
			c.clear(p.Cell)
			c.s.set(p.Cell, Unknown{Told: true})
		}
	}
}

// settled is the result of an operation of which nobody can say whether it fails with
// the answer as one that depends on more than that.
func settled(v Value) Value {
	switch v := v.(type) {
	case Tuple:
		out := Tuple{Of: make([]Value, len(v.Of))}
		for i, w := range v.Of {
			out.Of[i] = settled(w)
		}
		return out
	case Alt:
		none, some := false, false
		var all Value
		for _, w := range v.Of {
			is, known := isNil(w)
			none, some = none || is || !known, some || !is || !known
			all = join(all, settled(w))
		}
		if none && some {
			return Unknown{Told: true}
		}
		return all
	case Wrap: // what is in an error follows from the answer
		out := Wrap{Of: make([]Value, len(v.Of))}
		for i, w := range v.Of {
			out.Of[i] = settled(w)
		}
		return out
	case Unknown:
		return Unknown{Told: true}
	}
	return v
}

// probe takes down what is known at a call.
func (m *Machine) probe(s *state, args []Value) {
	if m.Seen == nil {
		m.Seen, m.Cells = args, map[string]Value{}
	} else {
		m.Seen = joinAll(m.Seen, args)
	}
	for k, e := range s.heap.all() {
		m.Cells[k] = join(m.Cells[k], e.v)
	}
}

// enterable reports whether the module knows more of an operation than its name.
func (c *carrier) enterable(com *ssa.CallCommon) bool {
	if fn := c.target(com); fn != nil {
		return true
	}
	return !c.primitive(com) && com.StaticCallee() != nil
}

func joinArgs(old, args []Value) []Value {
	if old == nil {
		return args
	}
	return joinAll(old, args)
}

func mergeWaits(old, more []Waits) []Waits {
	seen := map[string]bool{}
	for _, w := range old {
		seen[w.key()] = true
	}
	for _, w := range more {
		if !seen[w.key()] {
			old = append(old, w)
		}
	}
	return old
}

// repeatsItself reports whether a call begins the next turn of the function at hand.
func (c *carrier) repeatsItself(fn *ssa.Function, args []Value) bool {
	return fn == c.m.Fn && c.m.Op != nil && c.m.Loop == nil && c.m.inOp == 0 && len(args) == len(fn.Params)
}

// recur begins the next turn of a function that calls itself.
func (c *carrier) recur(fn *ssa.Function, args []Value) bool {
	for i, p := range fn.Params {
		k := slot{c.m.turn + 1, p}
		c.m.top.env[k] = join(c.m.top.env[k], args[i])
	}
	if c.s.tried { // without an attempt there is nothing to repeat
		next := c.s.clone()
		next.tried = false
		c.m.next(next)
	}
	return false
}

// SendWord marks what of net/http sends.
var SendWord = regexp.MustCompile(`^(Do|Get|Post|PostForm|Head|RoundTrip)$`)

// primitive reports whether a call is where a request leaves the module.
func (c *carrier) primitive(com *ssa.CallCommon) bool {
	if c.target(com) != nil {
		return false
	}
	answers, fails := false, false
	for v := range com.Signature().Results().Variables() {
		answers = answers || IsResponse(v.Type())
		fails = fails || IsError(v.Type())
	}
	pkg := CalleePkg(com)
	if pkg == "net/http" && !SendWord.MatchString(CalleeName(com)) || pkg == "net/http/httptest" {
		return false // which reads a response, or makes a request
	}
	if c.m.Lib.Summarized(com) {
		return false
	}
	if answers && fails {
		return true
	}
	return fails && (isStub(com) || c.m.Lib.Remote(com))
}
