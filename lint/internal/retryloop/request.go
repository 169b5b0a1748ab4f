package retryloop

import (
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Sends returns the requests that the region's operations send, each once. Whether
// one may be repeated is for the rules to say.
func (r *Region) Sends() []fact.Send { return send.Of(r.f.Scope, r.Ops) }

// ReadOnly reports whether the names of the region's function, or of those that
// it attempts, say that it only reads.
func (r *Region) ReadOnly() bool {
	if send.ReadOnlyName(r.Fn) {
		return true
	}
	return slices.ContainsFunc(r.Ops, func(op *ssa.Call) bool {
		g := dataflow.Static(op.Common())
		return g != nil && send.ReadOnlyName(g)
	})
}

// Responses returns the operations of the region that yield an HTTP response,
// whose body must be drained and whose headers may say when to come back.
func (r *Region) Responses() []*ssa.Call {
	var found []*ssa.Call
	for _, c := range r.Ops {
		res := c.Common().Signature().Results()
		if res.Len() > 0 && send.IsResponse(res.At(0).Type()) {
			found = append(found, c)
		}
	}
	return found
}

// Interruptible reports whether each operation of the region takes a context and
// returns an error: what only computes takes none. A function that is handed over
// says nothing by its type.
func (r *Region) Interruptible() bool {
	return len(r.Ops) > 0 && !r.Callback && !slices.ContainsFunc(r.Ops, func(c *ssa.Call) bool {
		sig := c.Common().Signature()
		n := sig.Results().Len()
		return n == 0 || !dataflow.IsError(sig.Results().At(n-1).Type()) ||
			!slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool { return dataflow.IsContext(a.Type()) })
	})
}

// Mentions reports whether the region's function, or a function of the package
// that it calls, has a string constant, a field or a callee of a name that re
// matches. It looks three calls deep: a header is parsed close to the loop.
func (r *Region) Mentions(re *regexp.Regexp) bool {
	seen := map[*ssa.Function]bool{}
	// A literal is written for the function around it.
	for fn := r.Fn; fn != nil; fn = fn.Parent() {
		if mentions(r.f.Known, fn, re, seen, 3) {
			return true
		}
	}
	return false
}

// mentions is Mentions for one function. seen keeps it from going around.
// The depth bounds the search, and seen ends it at a recursion.
func mentions(known *fact.Table, fn *ssa.Function, re *regexp.Regexp, seen map[*ssa.Function]bool, depth int) bool {
	if seen[fn] {
		return false
	}
	seen[fn] = true
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		switch in := in.(type) {
		case *ssa.FieldAddr, *ssa.Field:
			if re.MatchString(dataflow.FieldOf(in.(ssa.Value))) {
				return true
			}
		case ssa.CallInstruction:
			c := in.Common()
			// A helper of that name counts even when its body cannot be read.
			if re.MatchString(dataflow.CalleeName(c)) {
				return true
			}
			if g := known.Body(c); g != nil && depth > 0 && mentions(known, g, re, seen, depth-1) {
				return true
			}
		}
		for _, op := range in.Operands(nil) {
			if str, ok := dataflow.ConstString(*op); ok && re.MatchString(str) {
				return true
			}
			if f, ok := (*op).(*ssa.Function); ok && re.MatchString(f.Name()) {
				return true
			}
		}
	}
	return false
}
