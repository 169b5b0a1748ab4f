package eval

import (
	"go/constant"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// call carries out a call, and reports whether the code goes on behind it.
func (c *carrier) call(in *ssa.Call) (v Value, goesOn bool) {
	com := in.Common()
	if noReturn(com) {
		return nil, false
	}
	args := make([]Value, len(com.Args))
	for i, a := range com.Args {
		args[i] = c.val(a)
	}
	if c.f.top && in == c.m.Probe {
		c.m.probe(c.s, args)
	}
	if c.f.top {
		if in == c.m.Op {
			return c.operation(in, args)
		}
	}
	if fn := Static(com); c.repeatsItself(fn, args) {
		return nil, c.recur(fn, args)
	}
	if c.f.top && c.sameBefore(in) {
		return c.outcome(in, args)
	}
	return c.policy(com, c.apply(in, com, args)), !c.m.over
}

// policy is what a call yields that asks of an error or a response whether to try
// again, or for other credentials: no policy repeats a success, and none but a refusal
// asks who is there.
func (c *carrier) policy(com *ssa.CallCommon, v Value) Value {
	res, s := com.Signature().Results(), c.m.Scene
	no := s.Outcome == Success && againWord.MatchString(CalleeName(com)) ||
		s.fails() && s.Status != 401 && s.Status != 403 && s.Outcome != Coded && refusalWord.MatchString(CalleeName(com))
	if !no || res.Len() == 0 || !Is(res.At(0).Type(), types.IsBoolean) ||
		!slices.ContainsFunc(com.Args, func(a ssa.Value) bool { return IsError(a.Type()) || IsResponse(a.Type()) }) {
		return v
	}
	switch v := v.(type) {
	case Unknown:
		return Const{V: Bool(false).V, Told: true}
	case Tuple:
		if isUnknown(v.Of[0]) {
			return Tuple{Of: append([]Value{Const{V: Bool(false).V, Told: true}}, v.Of[1:]...)}
		}
	}
	return v
}

// apply carries out a call that is not the operation.
func (c *carrier) apply(in ssa.CallInstruction, com *ssa.CallCommon, args []Value) Value {
	if b, ok := com.Value.(*ssa.Builtin); ok {
		return c.builtin(b.Name(), com, args)
	}
	if f, ok := c.val(com.Value).(Func); ok && Static(com) == nil && len(f.Fn.Blocks)+len(f.Free) == 0 {
		com = &ssa.CallCommon{Value: f.Fn, Args: com.Args} // var sleep = time.Sleep
	}
	name, pkg := CalleeName(com), CalleePkg(com)
	var recv Value
	if com.IsInvoke() {
		recv = c.val(com.Value)
	}
	if v, ok := c.model(in, com, pkg, name, recv, args); ok {
		return v
	}
	c.send(in, args)
	if c.m.inOp > 0 && c.primitive(com) {
		return c.m.result(com)
	}
	if !com.IsInvoke() && Static(com) == nil {
		if v, ok := c.dynamic(in, com, args); ok {
			return v
		}
		c.dynamicMaybe(in.(ssa.Instruction), com)
	}
	if fn := c.target(com); fn != nil {
		if c.m.inOp == 0 && c.dull(fn, com, args) {
			return c.guess(in, args, false)
		}
		if com.IsInvoke() {
			if i, ok := recv.(Iface); ok {
				recv = i.V
			}
			args = append([]Value{recv}, args...)
		}
		var free []Value
		if f, ok := c.val(com.Value).(Func); ok && f.Fn == fn {
			free = f.Free
		}
		before := c.s.waits
		if v, ok := c.enter(in, fn, free, args); ok {
			if c.m.inOp == 0 && sameWaits(before, c.s.waits) && sleepWord.MatchString(name) {
				c.sleeps(in.(ssa.Instruction), com, name, pkg, args)
			}
			return v
		}
		return c.guess(in, args, true)
	}
	if fn := Static(com); fn != nil && com.StaticCallee() != fn {
		args = c.bound(com, args)
	}
	if v, ok := c.m.Lib.Foreign(&Call{CallCommon: com, Args: args, Deep: c.m.inOp > 0, c: c, in: in}); ok {
		return v
	}
	if c.sleeps(in.(ssa.Instruction), com, name, pkg, args) {
		return c.m.quiet(com.Signature().Results())
	}
	return c.guess(in, args, false)
}

// quiet is what a call yields that succeeds.
func (m *Machine) quiet(res *types.Tuple) Value {
	all := make([]Value, res.Len())
	for i := range all {
		if IsError(res.At(i).Type()) {
			all[i] = Nil{}
		} else {
			all[i] = Unknown{}
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return Tuple{Of: all}
}

// guess is what a call yields of which nothing is known. One that is given what
// the answer said says more about it; an error that was handed on may be wrapped.
func (c *carrier) guess(in ssa.CallInstruction, args []Value, own bool) Value {
	com := in.Common()
	res := com.Signature().Results()
	// What a function of the package says that was too deep to enter may follow from
	// how the operation ended.
	told, server := own && c.m.Scene.Outcome != Quiet, false
	var inner []Value
	all := args
	if com.IsInvoke() {
		all = append([]Value{c.val(com.Value)}, args...)
	}
	for i, a := range com.Args {
		// An error may say more than is known of it.
		at := i + len(args) - len(com.Args)
		if at < 0 { // a timer calls what has no arguments
			continue
		}
		if _, none := args[at].(Nil); !none && IsError(a.Type()) {
			told = true
		}
	}
	for i, a := range all {
		told = told || Told(a)
		for _, w := range ways(a) {
			if _, ok := w.(Server); ok {
				server = true
			}
		}
		if i < len(com.Args)+1 {
			switch v := a.(type) {
			case Failure, Wrap:
				inner = append(inner, v)
			case Iface:
				if types.Implements(v.T, errorType) {
					inner = append(inner, v)
				}
			}
		}
	}
	out := make([]Value, res.Len())
	for i := range out {
		t := res.At(i).Type()
		switch {
		case IsError(t) && len(inner) > 0 && res.Len() == 1:
			out[i] = Wrap{inner}
		case IsError(t) && server && res.Len() > 1:
			out[i] = join(Nil{}, Made{ID: "unreadable"})
		case IsError(t) && own && c.m.inOp > 0 && c.m.Lib.Remote(com):
			out[i] = Unknown{Told: true}
		case IsError(t):
			out[i] = Nil{}
		case server:
			out[i] = Server{}
		case !told && c.once(in) && Is(t, types.IsNumeric) && !jitterWord.MatchString(CalleeName(com)):
			out[i] = Sym{Name: "call " + CalleeName(com) + c.id0(in)} // one value for all turns
		default:
			out[i] = c.result(com, t, i, told)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return Tuple{Of: out}
}

// result is one result of an unknown call: of a name of chance, random.
func (c *carrier) result(com *ssa.CallCommon, t types.Type, i int, told bool) Value {
	name := CalleeName(com)
	if Is(t, types.IsNumeric) && jitterWord.MatchString(name) {
		return Rand{}
	}
	if retryAfterWord.MatchString(name) && (IsDuration(t) || Is(t, types.IsInteger)) {
		return Server{}
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Chan:
		return Made{ID: name, Told: told}
	}
	return Unknown{Told: told}
}

// assume notes what a branch has told on one of its ways.
func (m *Machine) assume(f *frame, s *state, cond ssa.Value, holds bool) {
	if u, ok := cond.(*ssa.UnOp); ok && u.Op.String() == "!" {
		m.assume(f, s, u.X, !holds)
	}
	told := Told(m.val(f, s, cond))
	s.tell(cond, Const{V: constant.MakeBool(holds), Told: told})
	b, ok := cond.(*ssa.BinOp)
	if !ok || b.Op.String() != "==" && b.Op.String() != "!=" {
		return
	}
	equals := holds == (b.Op.String() == "==")
	x, y := m.val(f, s, b.X), m.val(f, s, b.Y)
	if len(ways(y)) != 1 {
		return
	}
	var left Value
	for _, w := range ways(x) {
		same, known := equal(unwrapBasic(w), y)
		if e, isSym := w.(Sym); isSym && y == (Nil{}) && !known && !equals && IsError(b.X.Type()) {
			w = Sym{Name: e.Name, Some: true} // an error that is not the nil it may have been
		}
		if !known || same == equals {
			left = join(left, w)
		}
	}
	if left == nil || left.key() == x.key() {
		return
	}
	s.tell(b.X, left)
	// What was loaded is what the cell holds, too.
	if u, ok := b.X.(*ssa.UnOp); ok && u.Op.String() == "*" {
		if p, ok := m.val(f, s, u.X).(Ptr); ok {
			if e, held := s.heap.get(p.Cell); held && e.key == x.key() {
				s.set(p.Cell, left)
			}
		}
	}
}

// once reports whether a call is carried out once, ahead of the loop at hand.
func (c *carrier) once(in ssa.CallInstruction) bool {
	if c.m.Loop == nil {
		return false
	}
	at, ok := in.(ssa.Instruction)
	return ok && !c.m.Loop.Contains(c.outer(at))
}
