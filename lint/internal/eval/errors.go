package eval

import (
	"go/constant"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/ssa"
)

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
		if strings.HasSuffix(name, "context.DeadlineExceeded") && c.m.Scene.Outcome == Lost {
			return Unknown{Told: true} // which is how many a lost response shows
		}
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
		c.store(unwrap(args[1]), found, p.Elem())
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
	if _, failed := args[len(args)-1].(Failure); !failed || !Is(res.At(0).Type(), types.IsBoolean) {
		return nil, false
	}
	k := Bool(false)
	k.Told = true
	return k, true
}
