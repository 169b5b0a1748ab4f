package eval

import (
	"go/constant"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// send notes a request that leaves the module by package net/http, or by a client
// that takes its requests.
func (c *carrier) send(in ssa.CallInstruction, args []Value) {
	if c.m.inOp == 0 && !c.m.Scene.Deep {
		return
	}
	com := in.Common()
	name, pkg := CalleeName(com), CalleePkg(com)
	note := func(method Value, keyed, body bool) {
		c.m.Sends = append(c.m.Sends, Send{Method: method, Keyed: keyed, Body: body, Call: in, Depth: c.f.depth})
	}
	if pkg == "net/http" && (name == "Post" || name == "PostForm") {
		note(String("POST"), false, true)
		return
	}
	if pkg == "net/http" && (name == "Get" || name == "Head") && !isHeaderCall(com) {
		note(String("GET"), false, false)
		return
	}
	if c.target(com) != nil || !c.primitive(com) {
		return
	}
	for i, a := range com.Args {
		p, ok := types.Unalias(a.Type()).(*types.Pointer)
		if !ok {
			continue
		}
		if n, ok := types.Unalias(p.Elem()).(*types.Named); !ok || n.Obj().Name() != "Request" {
			continue
		}
		for _, r := range ways(args[i]) {
			cell := ""
			switch r := unwrap(r).(type) {
			case Ptr:
				cell = r.Cell
			case Sym:
				cell = r.Name
			default: // of a maker that is not known
				if c.m.Scene.Method != "" {
					note(String(c.m.Scene.Method), false, true)
				} else {
					note(Unknown{}, false, true)
				}
				continue
			}
			method := c.m.read(c.s, cell+".Method", types.Typ[types.String])
			note(method, c.keyed(cell), true)
		}
	}
}

func isPtr(v Value) bool {
	_, ok := v.(Ptr)
	return ok
}

func isHeaderCall(com *ssa.CallCommon) bool {
	return len(com.Args) > 0 && IsHeader(com.Args[0].Type())
}

// keyed reports whether a request in a cell has the header of an idempotency key.
func (c *carrier) keyed(cell string) bool {
	header := cell + ".Header"
	if v, ok := c.s.cell(header); ok && isPtr(v) {
		p := v.(Ptr)
		header = p.Cell
	}
	for k := range c.s.heap.all() {
		if rest, ok := strings.CutPrefix(k, header+"!"); ok && IsKey(rest) {
			return true
		}
	}
	return false
}

// IsKey reports whether a header or a field is named for an idempotency key.
// Settings may name more; the linter sets it.
var IsKey = func(name string) bool { return strings.Contains(strings.ToLower(name), "idempoten") }

// Text is the text that a value is, or "".
func Text(v Value) string {
	if k, ok := unwrapBasic(v).(Const); ok && k.V.Kind() == constant.String {
		return constant.StringVal(k.V)
	}
	return ""
}

// MethodAt is the method of a request at the probe of a run, or the text that names
// one; "" when it is not known.
func (m *Machine) MethodAt(v Value) string {
	if t := Text(v); t != "" {
		return t
	}
	cell, ok := cellOf(v)
	if !ok {
		return "-"
	}
	for k, held := range m.Cells {
		if rest, ok := strings.CutPrefix(k, cell); ok && methodField.MatchString(rest) && strings.Count(rest, ".") == 1 {
			return Text(held)
		}
	}
	return ""
}
