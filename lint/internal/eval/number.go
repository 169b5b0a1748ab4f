package eval

import (
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"strings"

	"golang.org/x/tools/go/ssa"
)

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
		if Is(com.Args[len(args)-1].Type(), types.IsNumeric) {
			of = args[len(args)-1]
		}
	}
	r := Value(Rand{of})
	if com.Signature().Results().Len() == 2 {
		return Tuple{Of: []Value{r, Nil{}}}
	}
	return r
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
			return computed(name, args...)
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
		return computed(name, args...)
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

// extreme is the least or the greatest of some values.
func (c *carrier) extreme(name string, args []Value) Value {
	v := args[0]
	for _, a := range args[1:] {
		v = each(v, func(x Value) Value {
			return each(a, func(y Value) Value {
				a, ok := x.(Const)
				b, both := y.(Const)
				if name == "min" { // what is left of the time, say, is a limit of no pattern
					if u, ok := x.(Unknown); ok && !u.Told {
						return y
					}
					if u, ok := y.(Unknown); ok && !u.Told {
						return x
					}
				}
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
				return computed(name, x, y)
			})
		})
	}
	return v
}
