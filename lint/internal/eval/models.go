package eval

import (
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// randomPkgs draw at random, whatever they are asked for.
var randomPkgs = map[string]bool{"math/rand": true, "math/rand/v2": true, "crypto/rand": true}

// model carries out a function whose package is known better than by a summary.
func (c *carrier) model(in ssa.CallInstruction, com *ssa.CallCommon, pkg, name string, recv Value, args []Value) (Value, bool) {
	switch {
	case randomPkgs[pkg]:
		return c.random(com, name, args), true
	case pkg == "errors" || strings.HasSuffix(pkg, "/errors") || pkg == "golang.org/x/xerrors":
		return c.errors(com, name, args)
	case (name == "Append" || name == "Combine" || name == "Join") && com.Signature().Results().Len() == 1 && IsError(com.Signature().Results().At(0).Type()):
		return c.gather(args), true
	case pkg == "fmt" && name == "Errorf":
		return c.errorf(args), true
	case pkg == "fmt" && strings.HasPrefix(name, "Sprint"):
		return Unknown{Told: c.toldIn(args)}, true
	case pkg == "time":
		return c.time(in, com, name, recv, args)
	case pkg == "math":
		return c.math(name, args), true
	case pkg == "cmp" && name == "Or", pkg == "cmp" && name == "Compare":
		return c.or(args), true
	case pkg == "slices" || pkg == "golang.org/x/exp/slices":
		return c.slices(name, args)
	case pkg == "net/http" || pkg == retryable:
		return c.http(in, com, name, recv, args)
	case strings.HasPrefix(pkg, "google.golang.org/grpc"):
		return c.grpc(com, pkg, name, recv, args)
	case pkg == "" && com.IsInvoke() && name == "Error":
		return Unknown{Told: Told(recv)}, true
	case com.IsInvoke() && com.Method.Name() == "Err" && isNamed(com.Value.Type(), "context", "Context"):
		return Nil{}, true
	case com.IsInvoke() && c.toldName(com, recv):
		return c.m.status(com.Signature().Results().At(0).Type()), true
	case pkg == "context":
		return c.m.quietWith(com.Signature().Results(), "context"), true
	case pkg == "strings" && len(args) == 2 && (name == "EqualFold" || name == "Contains" || name == "HasPrefix" || name == "HasSuffix"), pkg == "strings" && (name == "ToUpper" || name == "ToLower"):
		return c.text(name, args), true
	}
	if v, ok := contested(com, name, args); ok {
		return v, true
	}
	if com.IsInvoke() {
		return nil, false
	}
	// A getter of an error of the operation that an assertion has found.
	if len(args) == 1 && com.Signature().Recv() != nil && c.toldName(com, args[0]) && (c.target(com) == nil || isFailure(args[0])) {
		return c.m.status(com.Signature().Results().At(0).Type()), true
	}
	return nil, false
}

// othersWord marks errors that say that another one holds what is asked for, or has
// changed it meanwhile: what waits for its turn, or takes the new state, is no retry.
var othersWord = regexp.MustCompile(`(?i)(^|[^bc])lock|exist|conflict|taken|held|(not|un).?(obtained|acquired)|in.?use|stale|modified|version|wouldblock|^EAGAIN$|^EINTR$`)

// contested answers a predicate on the error of the operation that asks for such a
// reason: it is another one.
func contested(com *ssa.CallCommon, name string, args []Value) (Value, bool) {
	res := com.Signature().Results()
	if len(args) == 0 || res.Len() != 1 || !othersWord.MatchString(name) {
		return nil, false
	}
	b, ok := res.At(0).Type().Underlying().(*types.Basic)
	if _, failed := args[len(args)-1].(Failure); !ok || b.Kind() != types.Bool || !failed {
		return nil, false
	}
	k := Bool(false)
	k.Told = true
	return k, true
}

func isFailure(v Value) bool {
	_, ok := v.(Failure)
	return ok
}

// toldName reports whether a call asks the answer or the failure for its status.
func (c *carrier) toldName(com *ssa.CallCommon, recv Value) bool {
	res := com.Signature().Results()
	if res.Len() != 1 || !isInteger(res.At(0).Type()) || !statusName.MatchString(CalleeName(com)) {
		return false
	}
	switch unwrap(recv).(type) {
	case Failure, Answer:
		return true
	}
	return false
}

func (c *carrier) toldIn(args []Value) bool {
	for _, a := range args {
		if Told(a) {
			return true
		}
		if all, ok := c.m.elements(c.s, a); ok && anyTold(all) {
			return true
		}
	}
	return false
}

// quietWith is what a call yields that succeeds, with results that are no nil.
func (m *Machine) quietWith(res *types.Tuple, id string) Value {
	v := m.quiet(res)
	return each(v, func(v Value) Value {
		switch v := v.(type) {
		case Tuple:
			for i := range v.Of {
				if _, ok := v.Of[i].(Unknown); ok {
					v.Of[i] = Made{ID: id}
				}
			}
		case Unknown:
			return Made{ID: id}
		}
		return v
	})
}

// builtin carries out a function of the language.
func (c *carrier) builtin(name string, com *ssa.CallCommon, args []Value) Value {
	switch name {
	case "min", "max":
		return c.extreme(name, args)
	case "len":
		return each(args[0], func(v Value) Value {
			if k, ok := v.(Const); ok && k.V.Kind() == constant.String {
				return Const{constant.MakeInt64(int64(len(constant.StringVal(k.V)))), k.Told}
			}
			if all, ok := c.m.elements(c.s, v); ok && len(all) > 0 {
				return Int(int64(len(all)))
			}
			if s, ok := v.(Sym); ok {
				return Sym{"len " + s.Name}
			}
			return Unknown{Told: Told(v)}
		})
	case "append":
		return Made{ID: "list", Told: anyTold(args)}
	}
	return Unknown{Told: anyTold(args)}
}

// extreme is the least or the greatest of some values.
func (c *carrier) extreme(name string, args []Value) Value {
	v := args[0]
	for _, a := range args[1:] {
		v = each(v, func(x Value) Value {
			return each(a, func(y Value) Value {
				a, ok := x.(Const)
				b, both := y.(Const)
				if ok && both && a.V.Kind() != constant.Bool {
					if constant.Compare(a.V, token.LEQ, b.V) == (name == "min") {
						return marked(a, b.Told)
					}
					return marked(b, a.Told)
				}
				if isUnknown(x) || isUnknown(y) {
					return Unknown{Told: Told(x) || Told(y)}
				}
				if _, ok := x.(Server); ok {
					return x
				}
				if _, ok := y.(Server); ok {
					return y
				}
				return Expr{name, []Value{x, y}}
			})
		})
	}
	return v
}

// random is a draw, up to the last argument where there is one.
func (c *carrier) random(com *ssa.CallCommon, name string, args []Value) Value {
	if strings.HasPrefix(name, "New") || strings.HasPrefix(name, "Seed") || name == "Read" || name == "Shuffle" {
		return c.m.quiet(com.Signature().Results())
	}
	if strings.HasPrefix(name, "Float") {
		return Rand{Int(1)}
	}
	var of Value
	if len(args) > 0 && len(com.Args) > 0 {
		if b, ok := com.Args[len(args)-1].Type().Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 {
			of = args[len(args)-1]
		}
	}
	r := Value(Rand{of})
	if com.Signature().Results().Len() == 2 {
		return Tuple{Of: []Value{r, Nil{}}}
	}
	return r
}

// errors carries out a package of errors.
func (c *carrier) errors(com *ssa.CallCommon, name string, args []Value) (Value, bool) {
	switch name {
	case "New", "Errorf":
		if len(args) > 0 && !IsError(com.Args[0].Type()) {
			return c.errorf(args), true
		}
	case "Is", "IsAny":
		if len(args) == 2 {
			return each(args[0], func(v Value) Value { return each(args[1], func(t Value) Value { return c.is(v, t, 0) }) }), true
		}
	case "As":
		if len(args) == 2 {
			return c.asInto(com, args), true
		}
	case "AsType":
		if fn := com.StaticCallee(); fn != nil && len(fn.TypeArgs()) == 1 {
			return each(args[0], func(v Value) Value {
				found, ok := c.m.as(c.s, v, fn.TypeArgs()[0], false)
				return Tuple{Of: []Value{found, ok}}
			}), true
		}
	case "Unwrap", "Cause":
		if len(args) == 1 {
			return each(args[0], func(v Value) Value {
				switch v := v.(type) {
				case Wrap:
					return v.Of[0]
				case Failure:
					return v
				}
				return v
			}), true
		}
	case "Join":
		if len(args) > 0 {
			if all, ok := c.m.elements(c.s, args[len(args)-1]); ok {
				return Wrap{all}, true
			}
		}
	}
	if len(args) > 0 && com.Signature().Results().Len() == 1 && IsError(com.Signature().Results().At(0).Type()) { // Wrap, WithStack
		for i, a := range com.Args {
			if IsError(a.Type()) {
				return each(args[i], func(v Value) Value {
					if _, ok := v.(Nil); ok {
						return v
					}
					return Wrap{[]Value{v}}
				}), true
			}
		}
	}
	return nil, false
}

// gather is an error that joins others, or none where all of them are nil.
func (c *carrier) gather(args []Value) Value {
	var inner []Value
	open := false
	for _, a := range args {
		all, ok := c.m.elements(c.s, a)
		if !ok {
			all = []Value{a}
		}
		for _, v := range all {
			for _, w := range ways(v) {
				if is, known := isNil(w); !known {
					open = true
				} else if !is {
					inner = append(inner, w)
				}
			}
		}
	}
	switch {
	case len(inner) > 0:
		return Wrap{inner}
	case open:
		return Unknown{Told: anyTold(args)}
	}
	return Nil{}
}

// isRefused reports whether a value is the number of a refused connection, on any
// system: nothing was sent then.
func isRefused(v Value) bool {
	i, ok := v.(Iface)
	if !ok || !strings.HasSuffix(i.T.String(), "syscall.Errno") {
		return false
	}
	switch keyOf(i.V) {
	case "111", "61", "10061", "146":
		return true
	}
	return false
}

// is says whether an error is, or holds, another one.
func (c *carrier) is(v, target Value, depth int) Value {
	if depth > 5 {
		return Unknown{Told: true}
	}
	switch v := v.(type) {
	case Nil:
		return Bool(false)
	case Wrap:
		var all Value
		for _, w := range v.Of {
			for _, w := range ways(w) {
				is := c.is(w, target, depth+1)
				if yes, no := truth(is); yes && !no {
					return is
				}
				all = join(all, is)
			}
		}
		if all == nil {
			return Bool(false)
		}
		return all
	case Failure:
		// A response came, or was lost on the way: the caller has not given up, and the
		// server was not found missing.
		name := keyOf(target)
		k := Bool(false)
		k.Told = true
		if strings.Contains(name, "context.") || c.m.Scene.Outcome == Answered || c.m.Scene.Outcome == Coded || c.m.Scene.Outcome == Untrusted ||
			isRefused(target) || strings.Contains(name, "net/http.Err") || othersWord.MatchString(name[strings.LastIndexByte(name, '.')+1:]) {
			return k
		}
		return Unknown{Told: true}
	case Iface:
		if inner := c.m.unwraps(c.s, v); inner != nil {
			return each(inner, func(w Value) Value { return c.is(w, target, depth+1) })
		}
		return Bool(false)
	}
	same, known := equal(v, target)
	if known {
		return Bool(same)
	}
	return Unknown{Told: Told(v)}
}

// asInto carries out errors.As, which writes what it finds.
func (c *carrier) asInto(com *ssa.CallCommon, args []Value) Value {
	mi, ok := com.Args[1].(*ssa.MakeInterface)
	if !ok {
		return Unknown{Told: Told(args[0])}
	}
	p, ok := mi.X.Type().Underlying().(*types.Pointer)
	if !ok {
		return Unknown{Told: Told(args[0])}
	}
	var found, is Value
	for _, v := range ways(args[0]) {
		f, k := c.m.as(c.s, v, p.Elem(), false)
		found, is = join(found, f), join(is, k)
	}
	if yes, _ := truth(is); yes {
		c.store(unwrap(args[1]), found)
	}
	return is
}

// errorf is an error that holds those of its arguments that %w names.
func (c *carrier) errorf(args []Value) Value {
	if len(args) < 2 {
		return Made{ID: "error"}
	}
	format, ok := args[0].(Const)
	if !ok || format.V.Kind() != constant.String || !strings.Contains(constant.StringVal(format.V), "%w") {
		return Made{ID: "error"}
	}
	all, _ := c.m.elements(c.s, args[len(args)-1])
	var inner []Value
	for _, v := range all {
		for _, w := range ways(v) {
			switch x := w.(type) {
			case Failure, Wrap, Unknown:
				inner = append(inner, w)
			case Sym:
				inner = append(inner, w)
			case Iface:
				if types.Implements(x.T, errorType) {
					inner = append(inner, w)
				}
			}
		}
	}
	if len(inner) == 0 {
		return Made{ID: "error"}
	}
	return Wrap{inner}
}

// time carries out package time: its clocks, and arithmetic of durations.
func (c *carrier) time(in ssa.CallInstruction, com *ssa.CallCommon, name string, recv Value, args []Value) (Value, bool) {
	at := in.(ssa.Instruction)
	switch name {
	case "Sleep":
		c.waits(at, args[0], false)
		return Tuple{}, true
	case "After":
		if com.Signature().Recv() == nil {
			return Expr{"after", args}, true
		}
	case "Tick":
		return Expr{"tick", args}, true
	case "NewTimer", "NewTicker":
		cell := c.fresh(at.(ssa.Value))
		c.s.set(cell+".D", args[0])
		c.s.set(cell+".C", Sym{cell + ".C"})
		if name == "NewTicker" {
			c.s.set(cell+".ticker", Bool(true))
		}
		return Ptr{cell}, true
	case "Reset":
		if len(args) == 2 {
			for _, p := range ways(args[0]) {
				switch p := p.(type) {
				case Ptr:
					c.s.set(p.Cell+".D", args[1])
				case Sym:
					c.s.set(p.Name+".D", args[1])
				}
			}
		}
		return Bool(true), true
	case "Now", "Since", "Until", "AfterFunc", "Parse":
		return c.guess(com, args, false), true
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
	return c.guess(com, args, false), true
}

// math carries out package math: constants are computed.
func (c *carrier) math(name string, args []Value) Value {
	switch name {
	case "Min":
		return c.extreme("min", args)
	case "Max":
		return c.extreme("max", args)
	}
	nums := make([]float64, len(args))
	for i, a := range args {
		k, ok := a.(Const)
		if !ok {
			if isUnknown(a) {
				return Unknown{Told: Told(a)}
			}
			return Expr{name, args}
		}
		nums[i], _ = constant.Float64Val(constant.ToFloat(k.V))
	}
	v := math.NaN()
	switch {
	case name == "Pow" && len(nums) == 2:
		v = math.Pow(nums[0], nums[1])
	case name == "Exp2" && len(nums) == 1:
		v = math.Exp2(nums[0])
	case name == "Exp" && len(nums) == 1:
		v = math.Exp(nums[0])
	case (name == "Floor" || name == "Ceil" || name == "Round" || name == "Trunc") && len(nums) == 1:
		v = map[string]func(float64) float64{"Floor": math.Floor, "Ceil": math.Ceil, "Round": math.Round, "Trunc": math.Trunc}[name](nums[0])
	case name == "Log" && len(nums) == 1:
		v = math.Log(nums[0])
	case name == "Ldexp" && len(nums) == 2:
		v = math.Ldexp(nums[0], int(nums[1]))
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Expr{name, args}
	}
	return Const{V: constant.MakeFloat64(v)}
}

// or is the first of some values that is not zero.
func (c *carrier) or(args []Value) Value {
	var v Value
	for _, a := range args {
		all, ok := c.m.elements(c.s, a)
		if !ok {
			all = []Value{a}
		}
		for _, w := range all {
			v = join(v, w)
		}
	}
	return v
}

// slices carries out what package slices says of lists that are known.
func (c *carrier) slices(name string, args []Value) (Value, bool) {
	if name != "Contains" && name != "Index" || len(args) != 2 {
		return nil, false
	}
	told := Told(args[1])
	all, known := c.m.elements(c.s, args[0])
	if !known {
		return Unknown{Told: told}, true
	}
	k, ok := unwrapBasic(args[1]).(Const)
	if !ok {
		return Unknown{Told: told}, true
	}
	has := slices.ContainsFunc(all, func(v Value) bool { w, ok := v.(Const); return ok && w.key() == k.key() })
	if name == "Index" {
		return Const{constant.MakeInt64(map[bool]int64{true: 0, false: -1}[has]), told}, true
	}
	return Const{constant.MakeBool(has), told}, true
}

// text compares texts that are known.
func (c *carrier) text(name string, args []Value) Value {
	return each(args[0], func(x Value) Value {
		a, ok := x.(Const)
		if len(args) == 1 {
			if !ok || a.V.Kind() != constant.String {
				return x
			}
			s := constant.StringVal(a.V)
			if name == "ToUpper" {
				s = strings.ToUpper(s)
			} else {
				s = strings.ToLower(s)
			}
			return Const{constant.MakeString(s), a.Told}
		}
		return each(args[1], func(y Value) Value {
			b, both := y.(Const)
			if !ok || !both || a.V.Kind() != constant.String || b.V.Kind() != constant.String {
				return Unknown{Told: Told(x) || Told(y)}
			}
			f := map[string]func(a, b string) bool{"EqualFold": strings.EqualFold, "Contains": strings.Contains, "HasPrefix": strings.HasPrefix, "HasSuffix": strings.HasSuffix}[name]
			return Const{constant.MakeBool(f(constant.StringVal(a.V), constant.StringVal(b.V))), a.Told || b.Told}
		})
	})
}

// retryable is the path of a client whose requests are built as those of net/http.
const retryable = "github.com/hashicorp/go-retryablehttp"

// http carries out package net/http, but for the calls that send.
func (c *carrier) http(in ssa.CallInstruction, com *ssa.CallCommon, name string, recv Value, args []Value) (Value, bool) {
	switch name {
	case "NewRequest", "NewRequestWithContext":
		cell := c.fresh(in.(ssa.Value))
		at := len(args) - 3
		if at < 0 {
			return nil, false
		}
		method, body := args[at], args[at+2]
		if k, ok := method.(Const); ok && k.key() == `""` {
			method = String("GET")
		}
		c.s.set(cell+".Method", method)
		c.s.set(cell+".Body", body)
		c.s.set(cell+".Header", Ptr{cell + ".Header"})
		return Tuple{Of: []Value{Ptr{cell}, Nil{}}}, true
	case "FromRequest":
		if len(args) == 1 {
			return Tuple{Of: []Value{args[0], Nil{}}}, true
		}
	case "WithContext", "Clone":
		if len(args) > 0 {
			return args[0], true
		}
	case "Get", "Values":
		if len(com.Args) > 0 && IsHeader(com.Args[0].Type()) {
			if Told(args[0]) {
				if c.m.Scene.Hinted {
					return Server{}, true
				}
				return join(Const{V: constant.MakeString(""), Told: true}, Server{}), true
			}
			return Unknown{}, true
		}
	case "Set", "Add":
		if len(args) == 3 && IsHeader(com.Args[0].Type()) {
			c.header(args)
			return Tuple{}, true
		}
	case "StatusText":
		return Unknown{Told: Told(args[0])}, true
	}
	return nil, false
}

// header notes the name of a header that is set on a request.
func (c *carrier) header(args []Value) {
	k, ok := args[1].(Const)
	if !ok || k.V.Kind() != constant.String {
		return
	}
	for _, h := range ways(args[0]) {
		switch h := h.(type) {
		case Ptr:
			c.s.set(h.Cell+"!"+strings.ToLower(constant.StringVal(k.V)), args[2])
		case Sym:
			c.s.set(h.Name+"!"+strings.ToLower(constant.StringVal(k.V)), args[2])
		}
	}
}

// grpc carries out what gRPC says of an error: its code.
func (c *carrier) grpc(com *ssa.CallCommon, pkg, name string, recv Value, args []Value) (Value, bool) {
	if !strings.HasSuffix(pkg, "/status") && pkg != "google.golang.org/grpc" || len(args) == 0 && recv == nil {
		return nil, false
	}
	code := func(v Value) Value {
		return each(v, func(v Value) Value {
			switch v := v.(type) {
			case Nil:
				return Int(0)
			case Failure:
				c.m.Asked = true
				if c.m.Scene.Outcome == Coded {
					return c.m.status(nil)
				}
				if c.m.Scene.Outcome == Answered {
					return Unknown{Told: true}
				}
			case Wrap:
				for _, w := range v.Of {
					if _, ok := w.(Failure); ok && c.m.Scene.Outcome == Coded {
						return c.m.status(nil)
					}
				}
			case Made:
				return Int(2)
			}
			return Unknown{Told: Told(v)}
		})
	}
	switch name {
	case "Code":
		if len(args) == 1 {
			return code(args[0]), true
		}
	case "FromError":
		return Tuple{Of: []Value{args[0], each(args[0], func(v Value) Value {
			switch v.(type) {
			case Nil:
				return Bool(true)
			case Failure:
				c.m.Asked = true
				k := Bool(c.m.Scene.Outcome == Coded)
				k.Told = true
				if c.m.Scene.Outcome == Lost {
					return Unknown{Told: true}
				}
				return k
			}
			return Unknown{Told: Told(v)}
		})}}, true
	case "Convert", "Err", "FromContextError":
		return args[0], true
	case "Error", "Errorf", "New":
		if len(args) > 0 && pkg != "google.golang.org/grpc" {
			return Made{ID: "status"}, true
		}
	}
	return nil, false
}
