package retryloop

import (
	"go/constant"
	"go/token"
	"regexp"
	"strings"
	"time"

	"golang.org/x/tools/go/ssa"
)

// Class says how a wait develops from one attempt to the next.
type Class int

const (
	Pluggable   Class = iota // decided elsewhere: no judgment
	Immediate                // no wait at all
	Fixed                    // the same every time
	Growing                  // grows, without randomness
	EqualJitter              // half fixed, half random
	Jittered                 // random
	Server                   // told by the server
)

// Delay is the classification of one wait's duration.
type Delay struct {
	Class Class
	Value time.Duration // when Known
	Known bool          // a compile-time constant
	Mixed bool          // server-directed, but with a fixed fallback
	Param bool          // Fixed because a parameter says so
	Name  string        // the variable or field that a fixed wait comes from
}

// flags gathers what a backward slice meets.
type flags struct {
	fixed, growing, jitter, equal, server, plug, param bool
	name                                               string
	value                                              *time.Duration
}

// frame is one level of a slice that descends into helpers.
type frame struct {
	f     *finder
	l     *Loop // nil inside helpers
	args  []ssa.Value
	fn    *ssa.Function
	up    *frame
	depth int
}

// slicer classifies a duration by walking backwards through its definition.
type slicer struct {
	fl    flags
	seen  map[ssa.Value]int // arithmetic depth of the last visit
	stack map[ssa.Value]int // value -> arithmetic depth at entry
	arith int
	ops   map[*ssa.Call]bool
	steps int
}

// classify tells how the duration v develops over the iterations of l.
func (f *finder) classify(v ssa.Value, l *Loop, ops []*ssa.Call) Delay {
	if v == nil {
		return Delay{}
	}
	s := &slicer{seen: map[ssa.Value]int{}, stack: map[ssa.Value]int{}, ops: map[*ssa.Call]bool{}}
	for _, c := range ops {
		s.ops[c] = true
	}
	s.walk(v, &frame{f: f, l: l, fn: f.fn})
	return s.fl.delay()
}

func (fl *flags) delay() Delay {
	d := Delay{Param: fl.param, Name: fl.name}
	switch {
	case fl.equal:
		d.Class = EqualJitter
	case fl.jitter:
		d.Class = Jittered
	case fl.plug:
		d.Class = Pluggable
	case fl.growing:
		d.Class = Growing
	case fl.server:
		d.Class, d.Mixed = Server, fl.fixed
	case fl.fixed:
		d.Class = Fixed
		if fl.value != nil {
			d.Value, d.Known = *fl.value, true
		}
	}
	return d
}

var (
	jitterWord = regexp.MustCompile(`(?i)jitter|rand|fuzz|splay|perturb`)
	serverWord = regexp.MustCompile(`(?i)retry.?after|ratelimit.?reset|rate.?reset|reset`)
	randPkgs   = map[string]bool{"math/rand": true, "math/rand/v2": true, "crypto/rand": true}
)

func (s *slicer) walk(v ssa.Value, fr *frame) {
	if s.steps++; v == nil || s.steps > 2000 {
		return
	}
	if entry, open := s.stack[v]; open {
		if s.arith > entry {
			s.fl.growing = true
		}
		return
	}
	// A value that was met already is walked again below more arithmetic: only
	// then can a cycle through several phis show that it grows.
	if depth, ok := s.seen[v]; ok && s.arith <= depth || s.arith > 8 {
		return
	}
	s.seen[v] = s.arith
	s.stack[v] = s.arith
	s.step(v, fr)
	delete(s.stack, v)
}

func (s *slicer) step(v ssa.Value, fr *frame) {
	if jitterWord.MatchString(valueName(v)) {
		s.fl.jitter = true
	}
	in, isInstr := v.(ssa.Instruction)
	outside := fr.l != nil && isInstr && !fr.l.contains(in)
	switch v := v.(type) {
	case *ssa.Const:
		s.constant(v)
	case *ssa.Parameter:
		s.parameter(v, fr)
	case *ssa.FreeVar, *ssa.Global:
		s.fl.fixed = true
		s.named(v)
	case *ssa.Phi:
		if outside && inOtherLoop(v, fr) {
			s.fl.plug = true
			return
		}
		for _, e := range v.Edges {
			s.walk(e, fr)
		}
	case *ssa.BinOp:
		s.binop(v, fr)
	case *ssa.Convert:
		s.walk(v.X, fr)
	case *ssa.ChangeType:
		s.walk(v.X, fr)
	case *ssa.MultiConvert:
		s.walk(v.X, fr)
	case *ssa.UnOp:
		s.load(v, fr)
	case *ssa.Field:
		if c := originCall(v.X); c != nil && s.ops[c] {
			s.fl.server = true
			return
		}
		s.named(v)
		s.fl.fixed = true
	case *ssa.Index:
		s.indexed(v.X, v.Index, fr)
	case *ssa.Lookup:
		s.fl.plug = true
	case *ssa.Extract:
		if _, ok := v.Tuple.(*ssa.Next); ok {
			s.fl.growing = true // one element of a range
			return
		}
		s.walk(v.Tuple, fr)
	case *ssa.Call:
		s.call(v, fr)
	default:
		s.fl.plug = true
	}
}

func (s *slicer) constant(v *ssa.Const) {
	s.fl.fixed = true
	if v.Value != nil && v.Value.Kind() == constant.Int {
		if d := time.Duration(v.Int64()); s.arith == 0 && (s.fl.value == nil || d > *s.fl.value) {
			s.fl.value = &d
		}
	}
}

func (s *slicer) named(v ssa.Value) {
	if n := valueName(v); n != "" && s.fl.name == "" {
		s.fl.name = n
	}
}

func (s *slicer) parameter(v *ssa.Parameter, fr *frame) {
	if fr.up != nil {
		for i, p := range fr.fn.Params {
			if p == v && i < len(fr.args) {
				s.walk(fr.args[i], fr.up)
				return
			}
		}
	}
	s.fl.fixed, s.fl.param = true, true
	s.named(v)
}

// binop walks both operands; a constant operand of arithmetic does not make
// the result fixed.
func (s *slicer) binop(v *ssa.BinOp, fr *frame) {
	if equalJitter(v) {
		s.fl.equal = true
	}
	s.arith++
	defer func() { s.arith-- }()
	_, cx := v.X.(*ssa.Const)
	_, cy := v.Y.(*ssa.Const)
	if !cx || cy {
		s.walk(v.X, fr)
	}
	if !cy {
		s.walk(v.Y, fr)
	}
	if v.Op == token.SHL && !cy && variant(v.Y, fr) {
		s.fl.growing = true
	}
}

// variant reports whether v changes from one iteration to the next.
func variant(v ssa.Value, fr *frame) bool {
	switch v := v.(type) {
	case *ssa.Phi:
		return fr.l != nil && fr.l.contains(v)
	case *ssa.Convert:
		return variant(v.X, fr)
	case *ssa.ChangeType:
		return variant(v.X, fr)
	case *ssa.BinOp:
		return variant(v.X, fr) || variant(v.Y, fr)
	case *ssa.Parameter:
		if fr.up == nil {
			return false
		}
		for i, p := range fr.fn.Params {
			if p == v && i < len(fr.args) {
				return variant(fr.args[i], fr.up)
			}
		}
	}
	return false
}

// load follows a read of a variable to what is stored in it.
func (s *slicer) load(v *ssa.UnOp, fr *frame) {
	if v.Op != token.MUL {
		if v.Op == token.SUB {
			s.walk(v.X, fr)
			return
		}
		s.fl.plug = true
		return
	}
	if serverWord.MatchString(valueName(v)) {
		s.fl.server = true
		return
	}
	s.named(v)
	addr := v.X
	if entry, open := s.stack[addr]; open {
		if s.arith > entry {
			s.fl.growing = true
		}
		return
	}
	switch a := addr.(type) {
	case *ssa.IndexAddr:
		s.indexed(a.X, a.Index, fr)
		return
	case *ssa.FieldAddr:
		if c := originCall(a.X); c != nil && s.ops[c] {
			s.fl.server = true
			return
		}
	}
	res := fr.f.res
	if fr.fn != fr.f.fn {
		res = newResolver(fr.fn)
	}
	stores := res.storesTo(addr)
	s.stack[addr] = s.arith
	defer delete(s.stack, addr)
	inLoop := false
	for _, st := range stores {
		if fr.l == nil || fr.l.contains(st) {
			inLoop = true
			s.walk(st.Val, fr)
		}
	}
	if inLoop {
		return
	}
	if _, isAlloc := addr.(*ssa.Alloc); isAlloc {
		if escapesInLoop(addr, fr.l) {
			s.fl.plug = true
			return
		}
		for _, st := range stores {
			s.walk(st.Val, fr)
		}
		if len(stores) > 0 {
			return
		}
	}
	if _, free := addr.(*ssa.FreeVar); free && variableGrows(addr.(*ssa.FreeVar)) {
		s.fl.plug = true
		return
	}
	s.fl.fixed = true
}

// indexed judges an element of a table: chosen by a varying index it grows.
func (s *slicer) indexed(table, index ssa.Value, fr *frame) {
	if _, isConst := index.(*ssa.Const); isConst {
		s.fl.fixed = true
		return
	}
	if jitterWord.MatchString(valueName(table)) {
		s.fl.jitter = true
		return
	}
	s.fl.growing = true
}

// originCall returns the call that produced the struct or pointer v.
func originCall(v ssa.Value) *ssa.Call {
	for range 6 {
		switch x := v.(type) {
		case *ssa.Call:
			return x
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.UnOp:
			v = x.X
		case *ssa.FieldAddr:
			v = x.X
		case *ssa.Field:
			v = x.X
		case *ssa.Phi:
			for _, e := range x.Edges {
				if c, ok := e.(*ssa.Extract); ok {
					if k, ok := c.Tuple.(*ssa.Call); ok {
						return k
					}
				}
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// escapesInLoop reports whether the address of a variable is handed to a call
// inside l, which may change it.
func escapesInLoop(addr ssa.Value, l *Loop) bool {
	if addr.Referrers() == nil {
		return false
	}
	for _, ref := range *addr.Referrers() {
		switch r := ref.(type) {
		case *ssa.Call:
			if l == nil || l.contains(r) {
				return true
			}
		case *ssa.MakeInterface:
			if l == nil || l.contains(r) {
				return true
			}
		case *ssa.MakeClosure:
			fn := r.Fn.(*ssa.Function)
			for i, b := range r.Bindings {
				if b == addr && i < len(fn.FreeVars) && storedIn(fn, fn.FreeVars[i]) {
					return true
				}
			}
		}
	}
	return false
}

func storedIn(fn *ssa.Function, addr ssa.Value) bool {
	return len(newResolver(fn).stores[addr]) > 0
}

// variableGrows reports whether a captured variable is ever changed by
// arithmetic on itself, in any of the functions that share it.
func variableGrows(v *ssa.FreeVar) bool {
	return storedIn(v.Parent(), v)
}

// call judges the result of a call.
func (s *slicer) call(c *ssa.Call, fr *frame) {
	com := c.Common()
	name, pkg := calleeName(com), calleePkg(com)
	switch {
	case s.ops[c]:
		s.fl.server = true
	case randPkgs[pkg] || jitterWord.MatchString(name):
		s.fl.jitter = true
	case serverWord.MatchString(name) || pkg == "net/http" && (name == "Get" || name == "Values"):
		s.fl.server = true
	case name == "min" || name == "max" || pkg == "math" || pkg == "strconv" || pkg == "time" && name != "Now" && name != "Since" && name != "Until":
		s.calc(c, name, fr)
	case com.IsInvoke() || static(com) == nil:
		s.fl.plug = true
	default:
		s.helper(c, fr)
	}
}

// calc walks the operands of plain arithmetic.
func (s *slicer) calc(c *ssa.Call, name string, fr *frame) {
	power := strings.HasPrefix(name, "Pow") || strings.HasPrefix(name, "Exp") || name == "Ldexp"
	if power {
		s.arith++
		defer func() { s.arith-- }()
	}
	for _, a := range c.Common().Args {
		if _, isConst := a.(*ssa.Const); isConst && len(c.Common().Args) > 1 {
			continue
		}
		s.walk(a, fr)
	}
	if len(c.Common().Args) > 0 && s.fl == (flags{}) {
		s.fl.fixed = true
	}
}

// helper descends into a function of this package, or asks its fact.
func (s *slicer) helper(c *ssa.Call, fr *frame) {
	com := c.Common()
	fn := static(com)
	if len(fn.Blocks) == 0 || fr.depth >= 4 {
		sum := fr.f.sums.of(com)
		if sum == nil || sum.Delay == Pluggable {
			s.fl.plug = true
			return
		}
		s.fl.growing = s.fl.growing || sum.Delay == Growing
		s.fl.jitter = s.fl.jitter || sum.Delay == Jittered
		s.fl.equal = s.fl.equal || sum.Delay == EqualJitter
		s.fl.fixed = s.fl.fixed || sum.Delay == Fixed
		return
	}
	sub := &frame{f: fr.f, args: com.Args, fn: fn, up: fr, depth: fr.depth + 1}
	for _, b := range fn.Blocks {
		ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
		if !ok {
			continue
		}
		for _, r := range ret.Results {
			if isDuration(r.Type()) || len(ret.Results) == 1 {
				s.walk(r, sub)
			}
		}
	}
	if len(fn.FreeVars) > 0 && storesFreeVar(fn) {
		s.fl.plug = true
	}
}

func storesFreeVar(fn *ssa.Function) bool {
	for _, v := range fn.FreeVars {
		if storedIn(fn, v) {
			return true
		}
	}
	return false
}

// inOtherLoop reports whether a phi outside the region's loop belongs to a
// loop around it, whose iterations may vary the wait.
func inOtherLoop(v *ssa.Phi, fr *frame) bool {
	for l := fr.l.Parent; l != nil; l = l.Parent {
		if l.Header == v.Block() {
			return true
		}
	}
	return false
}
