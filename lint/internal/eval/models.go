package eval

import (
	"go/constant"
	"go/types"
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
	case com.IsInvoke() && com.Method.Name() == "Err" && IsNamed(com.Value.Type(), "context", "Context"):
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

func isFailure(v Value) bool {
	_, ok := v.(Failure)
	return ok
}

// toldName reports whether a call asks the answer or the failure for its status.
func (c *carrier) toldName(com *ssa.CallCommon, recv Value) bool {
	res := com.Signature().Results()
	if res.Len() != 1 || !Is(res.At(0).Type(), types.IsInteger) || !statusName.MatchString(CalleeName(com)) {
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
				return Sym{Name: "len " + s.Name}
			}
			return Unknown{Told: Told(v)}
		})
	case "append":
		return Made{ID: "list", Told: anyTold(args)}
	}
	return Unknown{Told: anyTold(args)}
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
