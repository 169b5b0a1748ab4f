package eval

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// carrier carries out the instructions of one block.
type carrier struct {
	m        *Machine
	f        *frame
	n        node
	s        *state
	preds    map[node]bool
	widen    bool
	changed  bool // a value is another than at the visit before
	returned Value
}

// block carries out the block; ends says that nothing follows it.
func (c *carrier) block() (ends bool) {
	for _, in := range c.n.b.Instrs {
		c.m.steps++
		if c.m.steps > maxSteps || c.m.Op == nil && c.m.Keep == nil && c.m.steps > inSteps {
			c.m.stop(c.f)
			return true
		}
		switch in := in.(type) {
		case *ssa.Phi:
			c.set(in, c.phi(in))
		case *ssa.Return:
			c.returned = c.results(in)
			return true
		case *ssa.Panic:
			return true
		case *ssa.Call:
			v, goesOn := c.call(in)
			if !goesOn {
				return true
			}
			c.set(in, v)
		case *ssa.Store:
			c.store(c.val(in.Addr), c.val(in.Val), in.Val.Type())
		case *ssa.MapUpdate:
			c.mapUpdate(c.val(in.Map), c.val(in.Key), c.val(in.Value))
		case *ssa.Select:
			c.set(in, c.selects(in))
		case ssa.Value:
			c.set(in, c.value(in))
		}
	}
	return false
}

// results is what a return yields. Named results are loaded before it.
func (c *carrier) results(in *ssa.Return) Value {
	switch len(in.Results) {
	case 0:
		return Tuple{}
	case 1:
		return c.marked(c.val(in.Results[0]))
	}
	tup := Tuple{Of: make([]Value, len(in.Results))}
	for i, r := range in.Results {
		tup.Of[i] = c.marked(c.val(r))
	}
	return tup
}

// marked is a constant that is returned on a way which more of the answer than is
// known has chosen.
func (c *carrier) marked(v Value) Value {
	if k, ok := v.(Const); ok && c.s.doubt {
		k.Told = true
		return k
	}
	return v
}

// set notes the value of an instruction.
func (c *carrier) set(in ssa.Value, v Value) {
	if v == nil {
		v = Unknown{}
	}
	c.s.known.drop(in)
	k := slot{c.m.at(c.f, in), in}
	old := c.f.env[k]
	if old != nil && old.key() == v.key() {
		return
	}
	c.changed = true
	if old != nil && c.widen {
		if v = c.widened(in, old, v); v.key() == old.key() {
			return
		}
	}
	c.f.env[k] = v
}

// widened is a value that an inner loop goes on changing. A number that a helper computes
// in a loop follows from what the helper was given, whatever it is.
func (c *carrier) widened(in ssa.Value, old, now Value) Value {
	_, isPhi := in.(*ssa.Phi)
	if isPhi && !c.f.top && Is(in.Type(), types.IsNumeric) && len(c.f.args) > 0 {
		known := true
		if u, tooMany := now.(Unknown); tooMany && !u.Told {
			now = old // too many values to be told apart
		}
		for _, v := range slices.Concat(ways(old), ways(now)) {
			known = known && !isUnknown(v) && !Told(v)
		}
		for _, a := range c.f.args {
			known = known && !isUnknown(a)
		}
		if known {
			return computed("loop "+c.id(in), c.f.args...)
		}
	}
	return Unknown{Told: Told(old) || Told(now)}
}

func (c *carrier) val(v ssa.Value) Value { return c.m.val(c.f, c.s, v) }

// val is what is known of an SSA value at a point of a frame.
func (m *Machine) val(f *frame, s *state, v ssa.Value) Value {
	if k, ok := s.known.get(v); ok {
		return k.v
	}
	switch v := v.(type) {
	case *ssa.Const:
		if v.Value == nil {
			return zero(v.Type())
		}
		return convert(Const{V: v.Value}, v.Type())
	case *ssa.Global:
		return Ptr{globalCell(v)}
	case *ssa.Function:
		return Func{Fn: v}
	case *ssa.Builtin:
		return Unknown{}
	case *ssa.Parameter:
		k := slot{m.at(f, v), v}
		if p, ok := f.env[k]; ok {
			return p
		}
		for i, p := range f.fn.Params {
			if p == v && i < len(f.args) && f.args[i] != nil {
				return f.args[i]
			}
		}
		if f.top && m.Scene.Method != "" && isMethodName(v) {
			return String(m.Scene.Method)
		}
		return Sym{Name: "param " + f.id + " " + v.Name()}
	case *ssa.FreeVar:
		for i, p := range f.fn.FreeVars {
			if p == v && i < len(f.free) && f.free[i] != nil {
				return f.free[i]
			}
		}
		return Sym{Name: "free " + v.Name()}
	}
	if x, ok := f.env[slot{m.at(f, v), v}]; ok {
		return x
	}
	return Unknown{}
}

// isMethodName reports whether a parameter is a method of HTTP by its name.
func isMethodName(v *ssa.Parameter) bool {
	return Is(v.Type(), types.IsString) && (strings.EqualFold(v.Name(), "method") || strings.EqualFold(v.Name(), "verb") || strings.EqualFold(v.Name(), "httpMethod"))
}

// globalCell is the cell of a variable of a package.
func globalCell(g *ssa.Global) string {
	if g.Pkg == nil {
		return "var " + g.Name()
	}
	return "var " + g.Pkg.Pkg.Path() + "." + g.Name()
}

// phi joins what comes in on the edges that were taken. Behind a doubt, what
// differs depends on the answer.
func (c *carrier) phi(p *ssa.Phi) Value {
	var v Value
	for i, b := range p.Block().Preds {
		for from := range c.preds {
			if from.b != b {
				continue
			}
			v = join(v, c.before(from, p.Edges[i]))
		}
	}
	if a, ok := v.(Alt); ok && c.s.doubt {
		all := make([]Value, len(a.Of))
		for i, w := range a.Of {
			if k, ok := w.(Const); ok {
				k.Told = true
				w = k
			}
			all[i] = w
		}
		return Alt{all}
	}
	return v
}

// before is a value as the block that control comes from knows it.
func (c *carrier) before(from node, v ssa.Value) Value {
	saved := c.m.turn
	if c.f.top {
		c.m.turn = from.turn
	}
	defer func() { c.m.turn = saved }()
	return c.m.val(c.f, nowhere, v)
}

// nowhere is a state in which no branch has told anything.
var nowhere = newState()

// value carries out an instruction without effects.
func (c *carrier) value(in ssa.Value) Value {
	switch in := in.(type) {
	case *ssa.BinOp:
		return binary(in.Op, c.val(in.X), c.val(in.Y), in.Type())
	case *ssa.UnOp:
		return c.unary(in)
	case *ssa.Alloc:
		cell := c.fresh(in)
		if _, again := c.s.cell(cell); again && !c.widen {
			c.clear(cell)
		}
		c.s.set(cell, zero(in.Type().Underlying().(*types.Pointer).Elem()))
		return Ptr{cell}
	case *ssa.FieldAddr:
		st := in.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct)
		return each(c.val(in.X), func(v Value) Value { return field(v, st, in.Field) })
	case *ssa.Field:
		st := in.X.Type().Underlying().(*types.Struct)
		return each(c.val(in.X), func(v Value) Value { return fieldOf(v, st, in.Field) })
	case *ssa.IndexAddr:
		return c.indexAddr(in)
	case *ssa.Index:
		return Unknown{Told: Told(c.val(in.Index))}
	case *ssa.Lookup:
		return c.lookup(in)
	case *ssa.Convert:
		return convert(truncated(c.val(in.X), in.Type()), in.Type())
	case *ssa.ChangeType:
		return c.val(in.X)
	case *ssa.ChangeInterface:
		return c.val(in.X)
	case *ssa.MultiConvert:
		return c.val(in.X)
	case *ssa.SliceToArrayPointer:
		return c.val(in.X)
	case *ssa.MakeInterface:
		return each(c.val(in.X), func(v Value) Value {
			switch v.(type) {
			case Failure, Answer, Unknown, Wrap, Server:
				return v
			case Nil:
				return Iface{in.X.Type(), v}
			}
			return Iface{in.X.Type(), v}
		})
	case *ssa.MakeClosure:
		fn := in.Fn.(*ssa.Function)
		f := Func{Fn: fn, Free: make([]Value, len(in.Bindings))}
		for i, b := range in.Bindings {
			f.Free[i] = c.val(b)
		}
		return f
	case *ssa.MakeMap:
		cell := c.fresh(in)
		c.s.set(cell+"#", Bool(true)) // all its keys are known
		return Ptr{cell}
	case *ssa.MakeSlice, *ssa.MakeChan:
		return Ptr{c.fresh(in)}
	case *ssa.Slice:
		return each(c.val(in.X), func(v Value) Value { return v })
	case *ssa.Extract:
		return each(c.val(in.Tuple), func(v Value) Value {
			if t, ok := v.(Tuple); ok && in.Index < len(t.Of) {
				return t.Of[in.Index]
			}
			if _, ok := v.(Server); ok {
				if IsError(in.Type()) {
					return Nil{}
				}
				return v
			}
			return Unknown{Told: Told(v)}
		})
	case *ssa.TypeAssert:
		return c.assert(in)
	case *ssa.Range:
		return Unknown{}
	case *ssa.Next:
		return Tuple{Of: []Value{Unknown{}, Item{c.id(in) + strconv.Itoa(c.m.turn)}, Item{c.id(in) + strconv.Itoa(c.m.turn) + "v"}}}
	}
	return Unknown{}
}

// truncated is a number as a type that it may lose its fraction to: a random part
// below one is lost with it.
func truncated(v Value, t types.Type) Value {
	e, ok := v.(Expr)
	if !ok || !Is(t, types.IsInteger) || e.Op != "+" {
		return v
	}
	for i, a := range e.Args {
		if r, ok := a.(Rand); ok && keyOf(r.Of) == "1" {
			return e.Args[1-i]
		}
	}
	return v
}

// fresh names the cell of an allocation. Each turn and each call has its own.
func (c *carrier) fresh(in ssa.Value) string {
	return "new " + c.f.id + " " + c.id(in) + " " + strconv.Itoa(c.m.at(c.f, in))
}

// id names an instruction within its function.
func (c *carrier) id(in ssa.Value) string {
	return fmt.Sprintf("%s%d", in.Name(), in.Pos())
}

// unary carries out loads, receives and negations.
func (c *carrier) unary(in *ssa.UnOp) Value {
	x := c.val(in.X)
	switch in.Op {
	case token.NOT:
		return each(x, func(v Value) Value {
			if k, ok := v.(Const); ok {
				return Const{V: constant.UnaryOp(token.NOT, k.V, 0), Told: k.Told}
			}
			return Unknown{Told: Told(v)}
		})
	case token.SUB:
		return each(x, func(v Value) Value {
			if k, ok := v.(Const); ok {
				return Const{V: constant.UnaryOp(token.SUB, k.V, 0), Told: k.Told}
			}
			return binary(token.SUB, Int(0), v, in.Type())
		})
	case token.MUL:
		return each(x, func(v Value) Value { return c.load(v, in.Type()) })
	case token.ARROW:
		c.receive(in, x)
		if in.CommaOk {
			return Tuple{Of: []Value{Unknown{}, Unknown{}}}
		}
	}
	return Unknown{Told: Told(x)}
}

// assert carries out a type assertion.
func (c *carrier) assert(in *ssa.TypeAssert) Value {
	return each(c.val(in.X), func(v Value) Value {
		found, ok := c.m.as(c.s, v, in.AssertedType, true)
		if !in.CommaOk {
			return found
		}
		return Tuple{Of: []Value{found, ok}}
	})
}

// selects carries out a select: it waits for the first of its clocks, and goes on
// with any case.
func (c *carrier) selects(in *ssa.Select) Value {
	tup := Tuple{Of: []Value{nil, Unknown{}}}
	var index Value
	for i, st := range in.States {
		index = join(index, Int(int64(i)))
		if st.Dir == types.RecvOnly {
			tup.Of = append(tup.Of, Unknown{})
			if in.Blocking && (!c.f.top || c.m.Loop == nil || !c.m.Loop.Blocks[in.Block()] || c.m.Loop.CaseStays(in, i)) {
				c.receive(in, c.val(st.Chan))
			}
		}
	}
	if !in.Blocking {
		index = join(index, Int(-1))
	}
	tup.Of[0] = index
	return tup
}
