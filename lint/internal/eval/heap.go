package eval

import (
	"go/types"
	"iter"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Cells are named by their way from where they were made: "new 0 t3.delay",
// "param 0 c.retries", "var pkg.codes[2]". A cell of something that is not known
// holds a symbol of its own name until it is written.

// field is the address of a field of what v points to.
func field(v Value, st *types.Struct, i int) Value {
	name := st.Field(i).Name()
	switch v := unwrap(v).(type) {
	case Ptr:
		return Ptr{v.Cell + "." + name}
	case Sym:
		return Ptr{v.Name + "." + name}
	case Item:
		return Ptr{"item " + v.Name + "." + name}
	case Answer:
		return Ptr{"answer." + name}
	case Part:
		return Ptr{"answer." + v.Name + "." + name}
	case Failure:
		return Ptr{"failure." + name}
	case Made:
		if v.ID == "result" {
			return Ptr{"result." + name}
		}
	}
	return Unknown{Told: Told(v)}
}

// fieldOf is a field of a struct.
func fieldOf(v Value, st *types.Struct, i int) Value {
	switch v := unwrap(v).(type) {
	case Struct:
		if i < len(v.Fields) {
			return v.Fields[i]
		}
	case Sym:
		return Sym{Name: v.Name + "." + st.Field(i).Name()}
	case Item:
		return Item{v.Name + "." + st.Field(i).Name()}
	}
	return Unknown{Told: Told(v)}
}

// load reads the cell that v points to.
func (c *carrier) load(v Value, t types.Type) Value {
	p, ok := unwrap(v).(Ptr)
	if !ok {
		switch v := unwrap(v).(type) {
		case Sym:
			p = Ptr{v.Name}
		case Item:
			return Item{v.Name + "*"}
		case Answer, Part, Failure:
			return v
		default:
			return Unknown{Told: Told(v)}
		}
	}
	return c.m.read(c.s, p.Cell, t)
}

// read is what a cell holds.
func (m *Machine) read(s *state, cell string, t types.Type) Value {
	if st, ok := t.Underlying().(*types.Struct); ok && st.NumFields() <= 40 {
		if v, ok := s.cell(cell); ok {
			if _, whole := v.(Struct); !whole && !s.written(cell, st) {
				return v
			}
		}
		all := Struct{T: st, Fields: make([]Value, st.NumFields())}
		for i := range all.Fields {
			all.Fields[i] = m.read(s, cell+"."+st.Field(i).Name(), st.Field(i).Type())
		}
		return all
	}
	if v, ok := s.cell(cell); ok {
		return v
	}
	if rest, ok := strings.CutPrefix(cell, "answer."); ok {
		return m.ofAnswer(rest, t)
	}
	if rest, ok := strings.CutPrefix(cell, "failure."); ok {
		return m.ofFailure(rest, t)
	}
	if strings.HasPrefix(cell, "result.") {
		if IsError(t) {
			return Nil{} // of what has succeeded
		}
		return Unknown{Told: true}
	}
	if strings.HasSuffix(cell, ".init$guard") {
		return Bool(false) // a package is set up once
	}
	if strings.HasPrefix(cell, "var ") {
		if IsError(t) {
			return Sym{Name: cell} // a sentinel, which is equal to itself alone
		}
		if v, ok := m.Lib.Init()[cell]; ok {
			return v
		}
	}
	if strings.HasPrefix(cell, "new 0init") {
		if v, ok := m.Lib.Init()[cell]; ok {
			return v
		}
	}
	// A field of a struct that was stored whole.
	if v, ok := m.part(s, cell, t); ok {
		return v
	}
	switch {
	case strings.HasPrefix(cell, "item "):
		return Item{cell[5:]}
	case strings.HasPrefix(cell, "new "):
		if strings.Contains(cell, "[") || strings.Contains(cell, "#") {
			return Unknown{}
		}
		return zero(t)
	}
	if m.Scene.Method != "" && Is(t, types.IsString) && methodField.MatchString(cell) {
		return String(m.Scene.Method)
	}
	return Sym{Name: cell}
}

// methodField marks fields that hold the method of a request.
var methodField = regexp.MustCompile(`(?i)\.(http)?(method|verb)$`)

// written reports whether a field of a struct was written by itself.
func (s *state) written(cell string, st *types.Struct) bool {
	for f := range st.Fields() {
		if _, ok := s.cell(cell + "." + f.Name()); ok {
			return true
		}
	}
	return false
}

// part is a field of a cell that holds a whole struct.
func (m *Machine) part(s *state, cell string, t types.Type) (Value, bool) {
	dot := strings.LastIndexByte(cell, '.')
	if dot < 0 {
		return nil, false
	}
	outer, ok := s.cell(cell[:dot])
	if !ok {
		if outer, ok = m.part(s, cell[:dot], t); !ok {
			return nil, false
		}
	}
	switch v := outer.(type) {
	case Struct:
		for i := range v.Fields {
			if v.T.Field(i).Name() == cell[dot+1:] {
				return v.Fields[i], true
			}
		}
	case Sym:
		return Sym{Name: v.Name + cell[dot:]}, true
	case Item:
		return Item{v.Name + cell[dot:]}, true
	case Failure:
		return m.ofFailure(cell[dot+1:], t), true
	case Answer:
		return m.ofAnswer(cell[dot+1:], t), true
	case Unknown:
		return v, true
	case Alt:
		return Unknown{Told: Told(v)}, true
	}
	return nil, false
}

// cellOf returns the name of the cell that a value points to, if it has one.
func cellOf(v Value) (cell string, ok bool) {
	switch v := unwrap(v).(type) {
	case Ptr:
		return v.Cell, true
	case Sym:
		return v.Name, true
	}
	return "", false
}

// store writes the cell that an address points to; of a struct or an array, what its
// parts held is gone. One of several addresses may be meant: then each of them may have
// kept what it held.
func (c *carrier) store(addr, v Value, t types.Type) {
	all := ways(addr)
	for _, a := range all {
		cell, ok := cellOf(a)
		if !ok {
			continue
		}
		held := v
		if len(all) > 1 {
			held = join(c.m.read(c.s, cell, t), v)
		}
		switch t.Underlying().(type) {
		case *types.Struct, *types.Array:
			c.clear(cell)
		}
		c.s.set(cell, held)
		c.stale(cell)
	}
}

// clear forgets what is below a cell.
func (c *carrier) clear(cell string) {
	for k := range c.s.heap.all() {
		if len(k) > len(cell) && strings.HasPrefix(k, cell) && (k[len(cell)] == '.' || k[len(cell)] == '[' || k[len(cell)] == '#') {
			c.s.heap.drop(k)
		}
	}
}

// stale forgets the structs around a cell, whose fields are read one by one then.
func (c *carrier) stale(cell string) {
	for {
		i := strings.LastIndexByte(cell, '.')
		if i < 0 {
			return
		}
		cell = cell[:i]
		whole, _ := c.s.cell(cell)
		if st, ok := whole.(Struct); ok {
			c.s.heap.drop(cell)
			for i := range st.Fields {
				name := cell + "." + st.T.Field(i).Name()
				if _, ok := c.s.cell(name); !ok {
					c.s.set(name, st.Fields[i])
				}
			}
		}
	}
}

// indexAddr is the address of an element. Where the index is not known it is any of
// the elements that are.
func (c *carrier) indexAddr(in *ssa.IndexAddr) Value {
	index := c.val(in.Index)
	return each(c.val(in.X), func(v Value) Value {
		cell, ok := cellOf(v)
		if !ok {
			return Unknown{Told: Told(v)}
		}
		return each(index, func(i Value) Value {
			if k, ok := i.(Const); ok {
				return Ptr{cell + "[" + k.key() + "]"}
			}
			if Told(i) {
				return Unknown{Told: true}
			}
			return Ptr{cell + "[" + c.id(in) + strconv.Itoa(c.m.turn) + "]"}
		})
	})
}

// elements are the values of a list, in no order; known is false when there may be
// others.
func (m *Machine) elements(s *state, list Value) (all []Value, known bool) {
	p, ok := unwrap(list).(Ptr)
	if !ok {
		_, none := unwrap(list).(Nil)
		return nil, none
	}
	seen := false
	collect := func(heap iter.Seq2[string, Value]) {
		for k, v := range heap {
			if rest, ok := strings.CutPrefix(k, p.Cell+"["); ok && strings.HasSuffix(rest, "]") && !strings.Contains(rest, ".") {
				all = append(all, v)
				seen = true
			}
		}
	}
	collect(func(yield func(string, Value) bool) {
		for k, e := range s.heap.all() {
			if !yield(k, e.v) {
				return
			}
		}
	})
	if strings.HasPrefix(p.Cell, "var ") || !seen {
		collect(maps.All(m.Lib.Init()))
	}
	return all, seen
}

// mapUpdate puts an entry into a map.
func (c *carrier) mapUpdate(m, k, v Value) {
	for _, m := range ways(m) {
		p, ok := unwrap(m).(Ptr)
		if !ok {
			continue
		}
		if k, ok := unwrapBasic(k).(Const); ok {
			c.s.set(p.Cell+"["+k.key()+"]", v)
		} else {
			c.s.heap.drop(p.Cell + "#")
		}
	}
}

// lookup reads a map or a text.
func (c *carrier) lookup(in *ssa.Lookup) Value {
	t := in.Type()
	if in.CommaOk {
		t = t.(*types.Tuple).At(0).Type()
	}
	give := func(v Value, ok Value) Value {
		if in.CommaOk {
			return Tuple{Of: []Value{v, ok}}
		}
		return v
	}
	return each(c.val(in.X), func(x Value) Value {
		return each(c.val(in.Index), func(k Value) Value {
			told := Told(k) || Told(x)
			p, isPtr := unwrap(x).(Ptr)
			key, isConst := unwrapBasic(k).(Const)
			if isPtr && isConst {
				cell := p.Cell + "[" + key.key() + "]"
				v, ok := c.s.cell(cell)
				if !ok {
					v, ok = c.m.Lib.Init()[cell]
				}
				if ok {
					yes := Bool(true)
					yes.Told = told
					return give(marked(v, told), yes)
				}
				_, full := c.s.cell(p.Cell + "#")
				if !full {
					_, full = c.m.Lib.Init()[p.Cell+"#"]
				}
				if full {
					no := Bool(false)
					no.Told = told
					return give(marked(zero(t), told), no)
				}
			}
			if IsHeader(in.X.Type()) && told {
				return give(Server{}, Unknown{Told: true})
			}
			return give(Unknown{Told: told}, Unknown{Told: told})
		})
	})
}

// marked is a constant that depends on the answer.
func marked(v Value, told bool) Value {
	if k, ok := v.(Const); ok {
		k.Told = k.Told || told
		return k
	}
	return v
}

// IsHeader reports whether t is the header of a request or a response.
func IsHeader(t types.Type) bool { return IsNamed(t, "net/http", "Header") }
