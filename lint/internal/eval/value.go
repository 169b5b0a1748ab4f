package eval

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Value is what is known of a Go value while code is carried out. Two values
// with the same key are the same value.
type Value interface{ key() string }

// The values, from what is known best to what is not known at all.
type (
	// Const is a number, a text or a bool. Told ones come from the answer of the
	// operation, such as its status.
	Const struct {
		V    constant.Value
		Told bool
	}
	// Nil is a nil of any type.
	Nil struct{}
	// Sym is a value that is not known, but stays the same from one attempt to the
	// next: a parameter, a setting.
	Sym struct {
		Name string
		Some bool // a branch has told that it is no nil
	}
	// Item is what a loop takes from a list at one of its turns.
	Item struct{ Name string }
	// Expr is computed from others by arithmetic.
	Expr struct {
		Op   string
		Args []Value
		name string // its key, unless ""
	}
	// Rand is drawn at random, from zero to Of where that is known.
	Rand struct{ Of Value }
	// Server is what a server has named, such as a Retry-After.
	Server struct{}
	// Ptr points to a cell of the heap.
	Ptr struct{ Cell string }
	// Struct holds fields, in the order of their type.
	Struct struct {
		T      *types.Struct
		Fields []Value
	}
	// Func is a function with what it has captured.
	Func struct {
		Fn   *ssa.Function
		Free []Value
	}
	// Iface is a value with its type, in an interface.
	Iface struct {
		T types.Type
		V Value
	}
	// Failure is the error by which the operation tells that it has failed.
	Failure struct{}
	// Answer is the response of the operation.
	Answer struct{}
	// Part is something of the answer that is no nil, such as its header.
	Part struct{ Name string }
	// Wrap is an error that holds others.
	Wrap struct{ Of []Value }
	// Made is a value that is no nil, made here and of no further interest. Told
	// ones depend on the answer.
	Made struct {
		ID   string
		Told bool
	}
	// Tuple holds the results of a call.
	Tuple struct{ Of []Value }
	// Unknown may be anything. Told ones depend on the answer of the operation.
	Unknown struct{ Told bool }
	// Alt is one of several values, on different ways.
	Alt struct{ Of []Value }
)

func (v Const) key() string   { return v.V.ExactString() }
func (Nil) key() string       { return "nil" }
func (v Sym) key() string     { return v.Name + map[bool]string{true: " some"}[v.Some] }
func (v Item) key() string    { return "item " + v.Name }
func (v Rand) key() string    { return "rand(" + keyOf(v.Of) + ")" }
func (Server) key() string    { return "server" }
func (v Ptr) key() string     { return "&" + v.Cell }
func (v Struct) key() string  { return "{" + keys(v.Fields) + "}" }
func (v Func) key() string    { return "func " + v.Fn.String() + "(" + keys(v.Free) + ")" }
func (v Iface) key() string   { return "<" + v.T.String() + ">" + keyOf(v.V) }
func (Failure) key() string   { return "failure" }
func (Answer) key() string    { return "answer" }
func (v Part) key() string    { return "answer." + v.Name }
func (v Wrap) key() string    { return "wrap(" + keys(v.Of) + ")" }
func (v Made) key() string    { return "made " + v.ID }
func (v Tuple) key() string   { return "(" + keys(v.Of) + ")" }
func (v Unknown) key() string { return map[bool]string{false: "?", true: "?!"}[v.Told] }
func (v Alt) key() string     { return "[" + keys(v.Of) + "]" }

func (v Expr) key() string {
	if v.name != "" {
		return v.name
	}
	return v.Op + "(" + keys(v.Args) + ")"
}

func keyOf(v Value) string {
	if v == nil {
		return ""
	}
	return v.key()
}

func keys(vs []Value) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(keyOf(v))
	}
	return b.String()
}

// Key is the identity of a value: equal keys are equal values.
func Key(v Value) string { return keyOf(v) }

// Bool, Int and String make constants.
func Bool(b bool) Const     { return Const{V: constant.MakeBool(b)} }
func Int(n int64) Const     { return Const{V: constant.MakeInt64(n)} }
func String(s string) Const { return Const{V: constant.MakeString(s)} }

// Told reports whether a value depends on the answer of the operation.
func Told(v Value) bool {
	switch v := v.(type) {
	case Const:
		return v.Told
	case Unknown:
		return v.Told
	case Made:
		return v.Told
	case Failure, Answer, Part, Server:
		return true
	case Iface:
		return Told(v.V)
	case Wrap:
		return anyTold(v.Of)
	case Alt:
		return anyTold(v.Of)
	case Expr:
		return anyTold(v.Args)
	case Struct:
		return anyTold(v.Fields)
	case Tuple:
		return anyTold(v.Of)
	}
	return false
}

func anyTold(vs []Value) bool {
	return slices.ContainsFunc(vs, Told)
}

// most is how many values an Alt holds; more are Unknown.
const most = 8

// join is the value that is one of two.
func join(a, b Value) Value {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	ka, kb := a.key(), b.key()
	if ka == kb {
		if Told(b) {
			return b
		}
		return a
	}
	ta, isTuple := a.(Tuple)
	tb, both := b.(Tuple)
	if isTuple && both && len(ta.Of) == len(tb.Of) {
		return Tuple{joinAll(ta.Of, tb.Of)}
	}
	sa, isStruct := a.(Struct)
	sb, both := b.(Struct)
	if isStruct && both && len(sa.Fields) == len(sb.Fields) {
		return Struct{sa.T, joinAll(sa.Fields, sb.Fields)}
	}
	all := ways(a)
	seen := map[string]bool{}
	for _, v := range all {
		seen[v.key()] = true
	}
	for _, v := range ways(b) {
		if !seen[v.key()] {
			seen[v.key()] = true
			all = append(all[:len(all):len(all)], v)
		}
	}
	switch {
	case len(all) == 1:
		return all[0]
	case len(all) > most:
		return Unknown{Told: anyTold(all)}
	}
	return Alt{all}
}

func joinAll(a, b []Value) []Value {
	all := make([]Value, len(a))
	for i := range a {
		all[i] = join(a[i], b[i])
	}
	return all
}

// ways returns the values that v may be.
func ways(v Value) []Value {
	if a, ok := v.(Alt); ok {
		return a.Of
	}
	return []Value{v}
}

// Ways returns the values that v may be: of an Alt each, of any other itself.
func Ways(v Value) []Value { return ways(v) }

// each applies f to every value that v may be, and joins what comes of it.
func each(v Value, f func(Value) Value) (all Value) {
	for _, w := range ways(v) {
		all = join(all, f(w))
	}
	return all
}

// unwrap takes a value out of its interface.
func unwrap(v Value) Value {
	if i, ok := v.(Iface); ok {
		return i.V
	}
	return v
}

// isNil says whether a value is nil: known is false when nothing says so.
func isNil(v Value) (is, known bool) {
	switch v := v.(type) {
	case Nil:
		return true, true
	case Ptr, Func, Failure, Answer, Part, Wrap, Made:
		return false, true
	case Iface:
		return false, true
	case Sym:
		return false, v.Some || isSentinel(v)
	}
	return false, false
}

// zero is the zero value of a type.
func zero(t types.Type) Value {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return Bool(false)
		case u.Info()&types.IsString != 0:
			return String("")
		case u.Info()&types.IsInteger != 0:
			return Int(0)
		case u.Info()&types.IsFloat != 0:
			return Const{V: constant.MakeFloat64(0)}
		}
	case *types.Struct:
		if u.NumFields() > 40 {
			return Unknown{}
		}
		s := Struct{T: u, Fields: make([]Value, u.NumFields())}
		for i := range s.Fields {
			s.Fields[i] = zero(u.Field(i).Type())
		}
		return s
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Signature, *types.Interface:
		return Nil{}
	case *types.Tuple:
		tup := Tuple{Of: make([]Value, u.Len())}
		for i := range tup.Of {
			tup.Of[i] = zero(u.At(i).Type())
		}
		return tup
	}
	return Unknown{}
}

// NotNil reports whether a value is certainly no nil.
func NotNil(v Value) bool {
	is, known := isNil(v)
	return known && !is
}

// Truth says whether a condition may be true, and whether it may be false.
func Truth(v Value) (yes, no bool) { return truth(v) }

// IsStatusName reports whether a name is one of a status.
func IsStatusName(name string) bool {
	return statusName.MatchString(name) || statusText.MatchString(name)
}
