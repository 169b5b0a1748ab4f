package status

import (
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// retryWord names statuses that are tried again, or lists of them, whose numbers
// are not known.
var retryWord = regexp.MustCompile(`(?i)^(retry|retri(ed|able))|retr(y|yable|ied|iable)_?(on)?_?(http)?_?(status(es)?|codes?)*$`)

// Words of names of statuses that are those of a success: at the beginning of the
// name, or at its end.
var (
	expectFirst = regexp.MustCompile(`^(expect(ed|s)?|want(ed|s)?|ok(ay)?|success(ful|es)?|accept(ed|able|s)?|valid|allow(ed|s)?|good)(http)?(status(es)?|codes?)*$`)
	expectLast  = regexp.MustCompile(`^(expected|wanted|ok|success(ful)?|accept(ed|able)?|valid)(status(es)?|codes?)*$`)
	statusWord  = regexp.MustCompile(`^(http|status(es)?|codes?)+$`)
)

// isExpected reports whether a name speaks of the statuses of a success. What is
// unexpected or not accepted is none of them.
func isExpected(name string) bool {
	words := dataflow.Words(name)
	if len(words) == 0 || dataflow.SaysNot(name) {
		return false
	}
	if expectFirst.MatchString(words[0]) {
		return true
	}
	last := len(words) - 1
	for last > 0 && statusWord.MatchString(words[last]) {
		last--
	}
	return expectLast.MatchString(words[last])
}

// members are the integers in a map or a slice: those that may be in it, and
// those that certainly are. They are known only if all of it is: one entry that
// is computed leaves it open.
type members struct {
	some, every codeset.Set
	known       bool
}

// or merges two lists, of which the one or the other is used.
func (m members) or(o members) members {
	return members{m.some.Or(o.some), m.every.And(o.every), m.known && o.known}
}

func exactly(s codeset.Set) members { return members{s, s, true} }

// anyOf merges what a variable may hold.
func anyOf(vs []ssa.Value, of func(ssa.Value) members) (all members) {
	found := false
	for _, v := range vs {
		if dataflow.IsNil(v) {
			continue // not set yet
		}
		m := of(v)
		if found {
			m = m.or(all)
		}
		all, found = m, true
		if !m.known {
			return members{}
		}
	}
	return all
}

// contains evaluates whether a set holds the status.
func (e *eval) contains(set, v ssa.Value) split {
	n := e.num(v)
	if n == nil || n.fixed {
		return split{}
	}
	m := e.members(set)
	if !m.known {
		if n.status {
			return e.byName(set)
		}
		return split{}
	}
	s := e.where(func(s int64) (bool, bool) {
		k, ok := n.at(s)
		return m.every.Has(k.lo), ok && k.one() && m.every.Has(k.lo) == m.some.Has(k.lo)
	})
	return s
}

// members returns the integers of a map or slice: of a literal, of a variable
// or a field that holds one by default, of what a function returns or is given.
func (e *eval) members(set ssa.Value) members {
	if !e.spend() {
		return members{}
	}
	defer e.done()
	if e.active[set] {
		return members{}
	}
	e.active[set] = true
	defer delete(e.active, set)
	switch v := set.(type) {
	case *ssa.Parameter:
		if k, ok := e.params[v]; ok && k.members.known {
			return k.members
		}
		return anyOf(e.argsOf(v), e.members)
	case *ssa.UnOp:
		if v.Op != token.MUL {
			return members{}
		}
		switch a := v.X.(type) {
		case *ssa.Global:
			return e.globalMembers(a)
		case *ssa.FieldAddr:
			return e.fieldMembers(dataflow.FieldVar(a), e.stored(a))
		}
		if x := cellValue(v); x != set {
			return e.members(x)
		}
		return anyOf(e.stored(v.X), e.members)
	case *ssa.Field:
		return e.fieldMembers(dataflow.FieldVar(v), e.stores(dataflow.FieldVar(v)))
	case *ssa.MakeMap:
		return mapMembers(v)
	case *ssa.Slice:
		return e.members(v.X)
	case *ssa.Alloc:
		return arrayMembers(v)
	case *ssa.ChangeType:
		return e.members(v.X)
	case *ssa.Phi:
		return anyOf(v.Edges, e.members)
	case *ssa.Call:
		return e.listResult(v)
	}
	return members{}
}

// globalMembers returns the integers of a map or a list that a variable of the
// package holds. One that is filled elsewhere is not known.
func (e *eval) globalMembers(g *ssa.Global) members {
	if u := e.j.use(g); u.first == nil || u.grown {
		return members{}
	}
	return e.members(e.initial(g))
}

// fieldMembers is the same for a field.
func (e *eval) fieldMembers(f *types.Var, held []ssa.Value) members {
	if e.j.isGrown(f) {
		return members{}
	}
	return anyOf(held, e.members)
}

// stored returns what is stored at an address: in this function, or else, for a
// field, anywhere in the package.
func (e *eval) stored(addr ssa.Value) (vs []ssa.Value) {
	for _, s := range e.sc.StoresTo(addr) {
		vs = append(vs, s.Val)
	}
	if fa, ok := addr.(*ssa.FieldAddr); ok && len(vs) == 0 {
		return e.stores(dataflow.FieldVar(fa))
	}
	return vs
}

// listResult returns what is in a list that a function of the package makes, or
// that append adds to.
func (e *eval) listResult(c *ssa.Call) members {
	if b, ok := c.Common().Value.(*ssa.Builtin); ok && b.Name() == "append" && len(c.Common().Args) == 2 {
		x, y := e.members(c.Common().Args[0]), e.members(c.Common().Args[1])
		return members{x.some.Or(y.some), x.every.Or(y.every), x.known && y.known}
	}
	fn := e.j.known.Body(c.Common())
	if fn == nil || fn.Signature.Results().Len() != 1 || e.depth >= evalDepth {
		return members{}
	}
	var vs []ssa.Value
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		vs = append(vs, ret.Results[0])
	}
	return anyOf(vs, e.enter(fn, c.Common().Args).members)
}

// values returns the constants that an integer may be: a field with a default,
// a parameter that all callers give a constant.
func (e *eval) values(v ssa.Value) members {
	if !e.spend() {
		return members{}
	}
	defer e.done()
	var from []ssa.Value
	switch v := v.(type) {
	case *ssa.Const:
		if n, ok := dataflow.ConstInt(v); ok && e.all.Has(n) {
			return exactly(codeset.Of(n))
		}
		return members{}
	case *ssa.Convert, *ssa.ChangeType:
		return e.values(dataflow.Operand(v))
	case *ssa.Parameter:
		if k, ok := e.params[v]; ok && k.num != nil && k.num.fixed {
			if n, _ := k.num.at(0); n.one() {
				return exactly(codeset.Of(n.lo))
			}
			return members{}
		}
		from = e.argsOf(v)
	case *ssa.UnOp:
		if g, ok := v.X.(*ssa.Global); ok {
			from = []ssa.Value{e.initial(g)}
		} else {
			from = e.stored(v.X)
		}
	case *ssa.Field:
		from = e.stores(dataflow.FieldVar(v))
	case *ssa.Phi:
		from = v.Edges
	}
	var set []ssa.Value // zero is no status: not set yet
	for _, f := range from {
		if n, ok := dataflow.ConstInt(f); !ok || n != 0 {
			set = append(set, f)
		}
	}
	m := anyOf(set, e.values)
	m.every = codeset.Set{}
	return m
}

// listOf returns the list that v is an element of, or the map that it is a key of;
// nil when it is no such thing, or always the same element.
func listOf(v ssa.Value) ssa.Value {
	switch v := v.(type) {
	case *ssa.UnOp:
		if ia, ok := v.X.(*ssa.IndexAddr); ok && v.Op == token.MUL && !dataflow.IsConst(ia.Index) {
			return ia.X
		}
	case *ssa.Index:
		if !dataflow.IsConst(v.Index) {
			return v.X
		}
	case *ssa.Extract:
		if next, ok := v.Tuple.(*ssa.Next); ok && v.Index == 1 {
			if r, ok := next.Iter.(*ssa.Range); ok {
				return r.X
			}
		}
	}
	return nil
}

// searching evaluates the head of a loop over a list that is searched for the
// status: it does not come to the list's end with a status that is in it, if the
// search ends where it is found.
func (e *eval) searching(length ssa.Value, op token.Token) (split, bool) {
	c, ok := length.(*ssa.Call)
	if !ok || op != token.LSS {
		return split{}, false
	}
	if b, ok := c.Common().Value.(*ssa.Builtin); !ok || b.Name() != "len" {
		return split{}, false
	}
	list := c.Common().Args[0]
	for ia := range dataflow.Refs[*ssa.IndexAddr](list) {
		for u := range dataflow.Refs[*ssa.UnOp](ia) {
			for b := range dataflow.Refs[*ssa.BinOp](u) {
				if b.Op != token.EQL && b.Op != token.NEQ || !e.endsSearch(b) {
					continue
				}
				other := b.X
				if other == ssa.Value(u) {
					other = b.Y
				}
				if n := e.num(other); n != nil && n.status {
					return split{yes: e.members(list).every}, true
				}
			}
		}
	}
	return split{}, false
}

// endsSearch reports whether what is looked for ends the loop that looks for it,
// when a comparison has found it.
func (e *eval) endsSearch(b *ssa.BinOp) bool {
	found := 0
	if b.Op == token.NEQ {
		found = 1
	}
	for i := range dataflow.Refs[*ssa.If](b) {
		if l := e.sc.Innermost[i.Block()]; l == nil || l.Blocks[i.Block().Succs[found]] {
			return false
		}
		return true
	}
	return false
}

// mapMembers reads the keys of a map literal off its updates. Keys whose value
// is false are none, and those that are added on some ways only may be there. A map
// without keys is filled where nobody looks.
func mapMembers(m *ssa.MakeMap) members {
	var some, every codeset.Set
	for u := range dataflow.Refs[*ssa.MapUpdate](m) {
		n, ok := dataflow.ConstInt(u.Key)
		if !ok {
			return members{}
		}
		if member, ok := dataflow.ConstBool(u.Value); member || !ok {
			some = some.Or(codeset.Of(n))
			if u.Block() == m.Block() {
				every = every.Or(codeset.Of(n))
			}
		}
	}
	return members{some, every, !some.Empty()}
}

// arrayMembers reads the elements of an array or slice literal off the stores to
// it.
func arrayMembers(a *ssa.Alloc) members {
	if p, ok := a.Type().Underlying().(*types.Pointer); !ok {
		return members{}
	} else if _, ok := p.Elem().Underlying().(*types.Array); !ok {
		return members{}
	}
	var set codeset.Set
	for ia := range dataflow.Refs[*ssa.IndexAddr](a) {
		for s := range dataflow.Refs[*ssa.Store](ia) {
			n, ok := dataflow.ConstInt(s.Val)
			if !ok {
				return members{}
			}
			set = set.Or(codeset.Of(n))
		}
	}
	return members{set, set, !set.Empty()}
}
