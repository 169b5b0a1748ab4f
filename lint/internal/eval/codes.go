package eval

import (
	"strings"

	"golang.org/x/tools/go/ssa"
)

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
