package retry

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Handed is a call that hands a function to a retry helper, which calls it again when
// it fails.
type Handed struct {
	Call *ssa.Call
	Fn   *ssa.Function // what is attempted
	// In is the retry of the helper, when it belongs to the package; By is what the
	// helper's package says of it otherwise.
	In *Retry
	By *Retrier
}

// Handed returns the calls of the package that hand a function to a retry helper.
func (r *Result) Handed() (all []Handed) {
	if !ablate.On("handed") {
		return nil
	}
	own := map[*ssa.Function]map[int]*Retry{}
	for _, t := range r.Retries {
		outer := Outermost(t.Fn)
		if i := handedParam(t, outer); i >= 0 {
			if own[outer] == nil {
				own[outer] = map[int]*Retry{}
			}
			own[outer][i] = t
		}
	}
	for _, fn := range r.Funcs {
		for c := range Calls(fn) {
			com := c.Common()
			callee := eval.Static(com)
			if retries := own[callee]; callee != nil && retries != nil {
				for i, t := range retries {
					if i < len(com.Args) {
						if f := FuncOf(com.Args[i]); f != nil && len(f.Blocks) > 0 {
							all = append(all, Handed{Call: c, Fn: f, In: t})
						}
					}
				}
				continue
			}
			by, i := r.foreignRetrier(com)
			if by == nil && callee != nil && len(callee.Blocks) > 0 {
				if by = r.passesOn(callee); by != nil {
					i = by.Param
				}
			}
			if by != nil && i < len(com.Args) {
				if f := FuncOf(com.Args[i]); f != nil && len(f.Blocks) > 0 {
					all = append(all, Handed{Call: c, Fn: f, By: by})
				}
			}
		}
	}
	return all
}

// helpers are functions of well-known libraries that call a parameter again, by
// package root and name, with the index of the parameter.
var helpers = []struct {
	root, name string
	param      int
	chooses    bool
}{
	{"github.com/cenkalti/backoff", "Retry", 0, false},
	{"github.com/cenkalti/backoff", "RetryNotify", 0, false},
	{"github.com/cenkalti/backoff/v5", "Retry", 1, false},
	{"github.com/avast/retry-go", "Do", 0, false},
	{"github.com/sethvargo/go-retry", "Do", 2, true},
	{"github.com/sethvargo/go-retry", "Exponential", 2, true},
	{"github.com/sethvargo/go-retry", "Constant", 2, true},
	{"github.com/sethvargo/go-retry", "Fibonacci", 2, true},
	{"k8s.io/client-go/util/retry", "OnError", 2, true},
	{"github.com/hashicorp/go-retryablehttp", "none", 0, true},
}

// foreignRetrier says of a function of another package whether it is a retry helper.
func (p *Package) foreignRetrier(c *ssa.CallCommon) (by *Retrier, param int) {
	if f := p.fact(c); f != nil && f.Retrier != nil {
		return f.Retrier, f.Retrier.Param
	}
	pkg, name := eval.CalleePkg(c), eval.CalleeName(c)
	for i := len(helpers) - 1; i >= 0; i-- {
		h := helpers[i]
		if name == h.name && under(pkg, h.root) {
			n := h.param
			if h.root == "github.com/cenkalti/backoff" && under(pkg, "github.com/cenkalti/backoff/v5") {
				n = 1
			}
			return &Retrier{Param: n, Class: Pluggable, Pure: true, Chooses: h.chooses || chosenBy(c)}, n
		}
	}
	return nil, 0
}

// chosenBy reports whether the function around a call says which errors are tried
// again.
func chosenBy(c *ssa.CallCommon) bool {
	for _, a := range c.Args {
		in, ok := a.(ssa.Instruction)
		if !ok || in.Parent() == nil {
			continue
		}
		for o := range Calls(in.Parent()) {
			if strings.HasPrefix(eval.CalleeName(o.Common()), "RetryIf") {
				return true
			}
		}
	}
	return false
}

// CarryHanded carries out the helper with what the call hands to it, in a scene; for
// a helper of another package, the function that is handed alone. It reports whether
// another attempt follows.
func (p *Package) CarryHanded(h Handed, s eval.Scene) (m *eval.Machine, certain, possible bool) {
	probe := &eval.Machine{Lib: p, Fn: h.Call.Parent(), Probe: h.Call, Scene: eval.Scene{Method: s.Method}}
	probe.Run()
	if h.In == nil {
		m = &eval.Machine{Lib: p, Fn: h.Fn, Scene: s, Inside: true, Heap: probe.Cells, Name: "handed"}
		for i, a := range h.Call.Common().Args {
			if FuncOf(a) == h.Fn && i < len(probe.Seen) {
				if f, ok := probe.Seen[i].(eval.Func); ok {
					m.Free = f.Free
				}
			}
		}
		m.Run()
		fails := certainlyFails(m.Returned) && !permanent(h.Fn)
		return m, fails && !h.By.Chooses, fails
	}
	m = &eval.Machine{Lib: p, Fn: h.In.Fn, Loop: h.In.Loop, Op: h.In.Ops[0], Scene: s, Heap: probe.Cells, Name: "handed"}
	if h.In.Fn.Parent() == nil {
		m.Args = probe.Seen
	}
	m.Run()
	certain, possible = m.Again()
	return m, certain, possible
}

// permanent reports whether a function marks some of its errors as final.
func permanent(fn *ssa.Function) bool {
	for c := range Calls(fn) {
		switch eval.CalleeName(c.Common()) {
		case "Permanent", "Unrecoverable", "Stop", "Abort", "NonRetryable":
			return true
		}
	}
	return false
}

// responseType reports whether a function is given a response or an error.
func responseType(fn *ssa.Function) bool {
	for _, p := range fn.Params {
		if eval.IsResponse(p.Type()) || eval.IsError(p.Type()) {
			return true
		}
	}
	return false
}

// IsAsked reports whether a function is asked about a response: it is given one, its
// status, or an error.
func IsAsked(fn *ssa.Function) bool {
	if responseType(fn) {
		return true
	}
	for _, p := range fn.Params {
		if eval.Is(p.Type(), types.IsInteger) {
			return true
		}
	}
	return false
}

// Polled reports whether a schedule that is made at n is one of a poll: what is handed to
// retry helpers beside it waits for a state.
func (r *Result) Polled(n ast.Node) bool {
	polled := false
	if !ablate.On("polls") {
		return false
	}
	for _, h := range r.Handed() {
		if syntax := Outermost(h.Call.Parent()).Syntax(); syntax == nil || n.Pos() < syntax.Pos() || n.End() > syntax.End() {
			continue
		}
		if !r.polls(h.Fn) {
			return false
		}
		polled = true
	}
	return polled
}

// polls reports whether a function may fail with an error of its own making after its
// operations have succeeded: "not yet".
func (p *Package) polls(fn *ssa.Function) bool {
	m := &eval.Machine{Lib: p, Fn: fn, Scene: eval.Scene{Outcome: eval.Success, Status: 200, Deep: true}, Inside: true}
	m.Run()
	v := m.Returned
	if t, ok := v.(eval.Tuple); ok && len(t.Of) > 0 {
		v = t.Of[len(t.Of)-1]
	}
	if v == nil {
		return false
	}
	return slices.ContainsFunc(eval.Ways(v), eval.NotNil)
}
