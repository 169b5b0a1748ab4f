package eval

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Library says what functions of other packages do, and which of the package's
// own implement an interface.
type Library interface {
	// Implementer returns the one method of the package that an interface's method
	// may be, or nil.
	Implementer(m *types.Func) *ssa.Function
	// Init holds what the variables of the package are at its start.
	Init() map[string]Value
	// Foreign carries out a function of another package by its summary; ok is false
	// for one of which nothing is known.
	Foreign(c *Call) (v Value, ok bool)
	// Summarized reports whether Foreign knows how a function of another package answers.
	Summarized(c *ssa.CallCommon) bool
	// Lively reports whether a function waits, or changes what it is given.
	Lively(fn *ssa.Function) bool
	// Remote reports whether a call leaves the module for another machine.
	Remote(c *ssa.CallCommon) bool
}

// Call is a call of a function of another package.
type Call struct {
	*ssa.CallCommon
	Args []Value
	Deep bool // it is a part of the operation
	c    *carrier
	in   ssa.CallInstruction
}

// Scene is the scene of the run.
func (c *Call) Scene() Scene { return c.c.m.Scene }

// Turn is the turn of the loop.
func (c *Call) Turn() int { return c.c.m.turn }

// Wait notes that the call lets time pass.
func (c *Call) Wait(d Value) { c.c.waits(c.in.(ssa.Instruction), d, false) }

// Sends notes a request that the call sends.
func (c *Call) Sends(s Send) {
	s.Call, s.Depth = c.in, c.c.f.depth+1
	c.c.m.Sends = append(c.c.m.Sends, s)
}

// Answers notes that a response was at hand, and that its status counted.
func (c *Call) Answers() { c.c.m.Answered, c.c.m.Looked = true, true }

// MethodOf is the method of a request, or of a text that names one.
func (c *Call) MethodOf(v Value) Value {
	if cell, ok := cellOf(v); ok {
		return c.c.m.read(c.c.s, cell+".Method", types.Typ[types.String])
	}
	return v
}

// KeyedBy reports whether a request has an idempotency key.
func (c *Call) KeyedBy(v Value) bool {
	cell, ok := cellOf(v)
	return ok && c.c.keyed(cell)
}

// Plain is what the call yields when it succeeds.
func (c *Call) Plain() Value { return c.c.guess(c.in, c.Args, false) }

// Result is what the call yields with the outcome of the scene.
func (c *Call) Result() Value { return c.c.m.result(c.CallCommon) }
