package eval

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

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
		if fn := Static(com); fn == c.m.Fn && c.m.Op != nil && c.m.Loop == nil && len(args) == len(fn.Params) {
			return nil, c.recur(fn, args)
		}
	}
	if c.f.top && c.sameBefore(in) {
		return c.outcome(in, args)
	}
	// Another operation of the same function waits, if it does, for itself.
	if c.f.top && c.m.Op != nil && in != c.m.Op && c.m.inOp == 0 && c.target(com) != nil && c.m.Lib.Remote(com) && !anyFunc(com) && !anyTold(args) {
		return c.guess(com, args, false), true
	}
	return c.apply(in, com, args), !c.m.over
}

// anyFunc reports whether a call is given a function.
func anyFunc(com *ssa.CallCommon) bool {
	for _, a := range com.Args {
		if _, ok := a.Type().Underlying().(*types.Signature); ok {
			return true
		}
	}
	return false
}

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
	c.s.doubt = false
	return c.outcome(in, args)
}

// sameBefore reports whether a call is the first attempt at the operation, ahead of the
// loop that repeats it.
func (c *carrier) sameBefore(in *ssa.Call) bool {
	op := c.m.Op
	if op == nil || c.m.Loop == nil || c.m.Loop.Contains(in) {
		return false
	}
	return Callee(in.Common()) != nil && Callee(in.Common()) == Callee(op.Common())
}

// outcome is what an attempt yields in the scene.
func (c *carrier) outcome(in *ssa.Call, args []Value) (v Value, goesOn bool) {
	if !c.m.Scene.Deep || !c.enterable(in.Common()) {
		if c.m.Scene.Deep {
			c.send(in, args)
		}
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
		for _, w := range v.Of {
			is, known := isNil(w)
			none, some = none || is || !known, some || !is || !known
		}
		if none && some {
			return Unknown{Told: true}
		}
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

// recur begins the next turn of a function that calls itself.
func (c *carrier) recur(fn *ssa.Function, args []Value) bool {
	for i, p := range fn.Params {
		k := slot{c.m.turn + 1, p}
		c.f.env[k] = join(c.f.env[k], args[i])
	}
	c.again(c.s)
	return false
}

// target is the function of the package that a call certainly enters, or nil.
func (c *carrier) target(com *ssa.CallCommon) *ssa.Function {
	if com.IsInvoke() {
		if i, ok := c.val(com.Value).(Iface); ok {
			if fn := method(c.f.fn.Prog, i.T, com.Method); fn != nil && len(fn.Blocks) > 0 {
				return fn
			}
		}
		return c.m.Lib.Implementer(com.Method)
	}
	if fn := Static(com); fn != nil {
		if len(fn.Blocks) > 0 {
			return fn
		}
		return nil
	}
	if f, ok := c.val(com.Value).(Func); ok && len(f.Fn.Blocks) > 0 {
		return f.Fn
	}
	return nil
}

// apply carries out a call that is not the operation.
func (c *carrier) apply(in ssa.CallInstruction, com *ssa.CallCommon, args []Value) Value {
	if b, ok := com.Value.(*ssa.Builtin); ok {
		return c.builtin(b.Name(), com, args)
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
			return c.guess(com, args, false)
		}
		if com.IsInvoke() {
			if i, ok := recv.(Iface); ok {
				recv = i.V
			}
			args = append([]Value{recv}, args...)
		}
		before := c.s.waits
		if v, ok := c.enter(in, fn, nil, args); ok {
			if c.m.inOp == 0 && sameWaits(before, c.s.waits) && sleepWord.MatchString(name) {
				c.sleeps(in.(ssa.Instruction), com, name, pkg, args)
			}
			return v
		}
		return c.guess(com, args, true)
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
	return c.guess(com, args, false)
}

func sameWaits(a, b []Waits) bool {
	return slices.EqualFunc(a, b, func(x, y Waits) bool { return x.key() == y.key() })
}

// dull reports whether a function is not worth entering outside of the operation: it
// neither waits nor is told anything of the answer, and yields nothing or an error.
func (c *carrier) dull(fn *ssa.Function, com *ssa.CallCommon, args []Value) bool {
	res := com.Signature().Results()
	if c.m.Keep != nil || res.Len() > 0 && !IsError(res.At(res.Len()-1).Type()) || c.m.Lib.Lively(fn) {
		return false
	}
	for i, a := range args {
		if Told(a) {
			return false
		}
		if _, isFunc := com.Args[i].Type().Underlying().(*types.Signature); isFunc {
			return false
		}
	}
	return true
}

// bound are the arguments of a method value, with the receiver that it holds.
func (c *carrier) bound(com *ssa.CallCommon, args []Value) []Value {
	if mc, ok := com.Value.(*ssa.MakeClosure); ok && len(mc.Bindings) == 1 {
		return append([]Value{c.val(mc.Bindings[0])}, args...)
	}
	return args
}

// dynamic carries out a call of a function value that is known, or of each that it
// may be.
func (c *carrier) dynamic(in ssa.CallInstruction, com *ssa.CallCommon, args []Value) (v Value, ok bool) {
	for _, w := range ways(c.val(com.Value)) {
		f, known := w.(Func)
		if !known || len(f.Fn.Blocks) == 0 {
			if m := boundMethod(f.Fn); known && m != nil && len(f.Free) == 1 && len(m.Blocks) > 0 {
				r, entered := c.enter(in, m, nil, append([]Value{f.Free[0]}, args...))
				if !entered {
					return nil, false
				}
				v, ok = join(v, r), true
				continue
			}
			return nil, false
		}
		r, entered := c.enter(in, f.Fn, f.Free, args)
		if !entered {
			return nil, false
		}
		v, ok = join(v, r), true
	}
	return v, ok
}

// enter carries out a function of the package; ok is false when it is too deep.
func (c *carrier) enter(in ssa.CallInstruction, fn *ssa.Function, free, args []Value) (v Value, ok bool) {
	if m := boundMethod(fn); m != nil && len(m.Blocks) > 0 {
		if len(free) == 1 {
			args, free = append([]Value{free[0]}, args...), nil
		} else {
			args = c.bound(in.Common(), args)
		}
		fn = m
	}
	limit := maxDepth
	if c.m.inOp == 0 {
		limit = 4
	}
	if c.f.depth >= limit || len(fn.Blocks) > 200 || c.m.visited[fn] > 1 {
		return nil, false
	}
	c.m.visited[fn]++
	defer func() { c.m.visited[fn]-- }()
	sub := &frame{
		fn: fn, args: args, free: free, up: c.f, site: in, depth: c.f.depth + 1,
		id: c.f.id + "/" + c.id0(in), env: map[slot]Value{},
	}
	st := c.s.clone()
	st.doubt = false
	ret, left := c.m.blocks(sub, st)
	if left == nil {
		if c.m.over {
			return nil, false
		}
		return c.guess(in.Common(), args, true), true // it never returns, as far as is known
	}
	doubt := c.s.doubt
	*c.s = *left
	c.s.doubt = doubt
	return ret, true
}

func (c *carrier) id0(in ssa.CallInstruction) string {
	if v, ok := in.(ssa.Value); ok {
		return c.id(v)
	}
	return "go"
}

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
	if pkg == "net/http" && CalleeName(com) == "NewRequest" || pkg == "net/http/httptest" {
		return false
	}
	if answers && fails {
		return true
	}
	return fails && (isStub(com) || c.m.Lib.Remote(com))
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
func (c *carrier) guess(com *ssa.CallCommon, args []Value, own bool) Value {
	res := com.Signature().Results()
	told, server := false, false
	var inner []Value
	all := args
	if com.IsInvoke() {
		all = append([]Value{c.val(com.Value)}, args...)
	}
	for i, a := range com.Args {
		// An error may say more than is known of it.
		if _, none := args[i+len(args)-len(com.Args)].(Nil); !none && IsError(a.Type()) {
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
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 && jitterWord.MatchString(name) {
		return Rand{}
	}
	if retryAfterWord.MatchString(name) && (IsDuration(t) || isInteger(t)) {
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
		if same, known := equal(unwrapBasic(w), y); !known || same == equals {
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

// noReturn reports whether a call ends the program: log.Fatal and its like.
func noReturn(com *ssa.CallCommon) bool {
	switch CalleeName(com) {
	case "Fatal", "Fatalf", "Fatalln", "FailNow", "Panicf", "Fatalw":
		return true
	case "Exit":
		return CalleePkg(com) == "os"
	}
	return false
}

// Static is the body behind a call when there is just one: of a function, a closure,
// a method value, an instance of a generic function. Instances share the body of
// their origin, unless they were built.
func Static(com *ssa.CallCommon) *ssa.Function {
	fn := com.StaticCallee()
	if fn == nil {
		return nil
	}
	if m := boundMethod(fn); m != nil {
		return m
	}
	if o := fn.Origin(); o != nil && len(o.Blocks) > 0 {
		return o
	}
	return fn
}

// boundMethod is the method behind a method value, or nil.
func boundMethod(fn *ssa.Function) *ssa.Function {
	if fn == nil || fn.Parent() != nil || len(fn.FreeVars) != 1 || !strings.HasSuffix(fn.Name(), "$bound") {
		return nil
	}
	obj, _ := fn.Object().(*types.Func)
	if obj == nil {
		return nil
	}
	return fn.Prog.FuncValue(obj)
}

// method is the method of a type that an interface's method stands for.
func method(prog *ssa.Program, t types.Type, m *types.Func) *ssa.Function {
	sel := prog.MethodSets.MethodSet(t).Lookup(m.Pkg(), m.Name())
	if sel == nil {
		return nil
	}
	obj, _ := sel.Obj().(*types.Func)
	if obj == nil {
		return nil
	}
	return prog.FuncValue(obj)
}

// Callee is the function or the interface's method that a call names, or nil.
func Callee(com *ssa.CallCommon) *types.Func {
	if com.IsInvoke() {
		return com.Method
	}
	if f := com.StaticCallee(); f != nil {
		if f.Origin() != nil {
			f = f.Origin()
		}
		obj, _ := f.Object().(*types.Func)
		return obj
	}
	return nil
}

// CalleePkg is the path of the package of what is called, or "".
func CalleePkg(com *ssa.CallCommon) string {
	if f := Callee(com); f != nil && f.Pkg() != nil {
		return f.Pkg().Path()
	}
	return ""
}

// CalleeName is the name of what is called, or of the variable that holds it.
func CalleeName(com *ssa.CallCommon) string {
	if f := Callee(com); f != nil {
		return f.Name()
	}
	if b, ok := com.Value.(*ssa.Builtin); ok {
		return b.Name()
	}
	return ValueName(com.Value)
}

// ValueName is the name by which code knows a value: of a variable, a field, a
// parameter, a function; "" for what has none.
func ValueName(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.UnOp:
		return ValueName(v.X)
	case *ssa.Global, *ssa.Parameter, *ssa.FreeVar:
		return v.Name()
	case *ssa.FieldAddr:
		return v.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct).Field(v.Field).Name()
	case *ssa.Field:
		return v.X.Type().Underlying().(*types.Struct).Field(v.Field).Name()
	case *ssa.Alloc:
		return v.Comment
	case *ssa.Phi:
		return v.Comment
	case *ssa.MakeInterface:
		return ValueName(v.X)
	case *ssa.ChangeType:
		return ValueName(v.X)
	case *ssa.Convert:
		return ValueName(v.X)
	case *ssa.Function:
		return v.Name()
	case *ssa.MakeClosure:
		return v.Fn.Name()
	}
	return ""
}
