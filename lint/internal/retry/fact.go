package retry

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/response"
)

// Fact is what callers in other packages need to know of a function. The zero value
// is a function of which nothing is known.
type Fact struct {
	Boundary Boundary
	Wait     *FactWait
	Delay    Class // of a returned duration
	// Retrier is set for a function that calls a parameter again when it fails.
	Retrier *Retrier
	// HTTP says that a response decides about the error that the function returns, and
	// Fails for which statuses it does; GRPC and Codes say so of codes.
	HTTP, GRPC   bool
	Fails, Codes []int64
	// Yes and No hold for which statuses a predicate is certainly true, and false.
	Yes, No         []int64
	YesCode, NoCode []int64
	Sends           []FactSend
}

// FactWait says that a function waits: for a parameter, or of itself.
type FactWait struct {
	Param int // or -1
	Class Class
}

// Retrier says that a function calls a parameter again.
type Retrier struct {
	Param int
	Class Class
	Pure  bool // until it succeeds
	// Chooses says that the function looks at the error before it goes on.
	Chooses bool
}

// FactSend is a request that a function sends, by a method of its own or one that a
// parameter says.
type FactSend struct {
	Method string
	Param  int // or -1
	Keyed  bool
}

// AFact makes Fact a fact.
func (*Fact) AFact() {}

// fact is what is known of a function of another package, or nil.
func (p *Package) fact(c *ssa.CallCommon) *Fact {
	f := eval.Callee(c)
	if f == nil || f.Pkg() == nil || f.Pkg() == p.SSA.Pkg {
		return nil
	}
	got := new(Fact)
	if p.Pass.ImportObjectFact == nil || !p.Pass.ImportObjectFact(f.Origin(), got) {
		return nil
	}
	return got
}

// Foreign implements eval.Library.
func (p *Package) Foreign(c *eval.Call) (v eval.Value, ok bool) {
	f := p.fact(c.CallCommon)
	if f == nil {
		return nil, false
	}
	if f.Wait != nil && !c.Deep {
		if f.Wait.Param >= 0 && f.Wait.Param < len(c.Args) {
			c.Wait(c.Args[f.Wait.Param])
		} else {
			c.Wait(sample(f.Wait.Class, c.Turn()))
		}
		ok = true
	}
	v = c.Plain()
	if c.Deep {
		for _, s := range f.Sends {
			snd := eval.Send{Method: eval.String(s.Method), Keyed: s.Keyed}
			if s.Param >= 0 && s.Param < len(c.Args) {
				snd.Method = c.MethodOf(c.Args[s.Param])
				snd.Keyed = snd.Keyed || c.KeyedBy(c.Args[s.Param])
			}
			c.Sends(snd)
		}
		switch s := c.Scene(); {
		case s.Outcome == eval.Answered && f.HTTP:
			c.Answers()
			if slices.Contains(f.Fails, s.Status) {
				return c.Result(), true
			}
			return v, true
		case s.Outcome == eval.Coded && f.GRPC:
			c.Answers()
			if slices.Contains(f.Codes, s.Status) {
				return c.Result(), true
			}
			return v, true
		case (s.Outcome == eval.Lost || s.Outcome == eval.Untrusted) && f.Boundary == Remote && fails(c.CallCommon):
			return c.Result(), true
		}
	}
	if f.Delay != Pluggable && c.Signature().Results().Len() == 1 {
		return sample(f.Delay, c.Turn()), true
	}
	if told := slices.ContainsFunc(c.Args, eval.Told); told && len(f.Yes)+len(f.No)+len(f.YesCode)+len(f.NoCode) > 0 && c.Signature().Results().Len() == 1 {
		s := c.Scene()
		yes, no := f.Yes, f.No
		if s.Outcome == eval.Coded {
			yes, no = f.YesCode, f.NoCode
		}
		if s.Outcome == eval.Answered || s.Outcome == eval.Coded {
			b := eval.Bool(slices.Contains(yes, s.Status))
			b.Told = true
			if slices.Contains(yes, s.Status) || slices.Contains(no, s.Status) {
				return b, true
			}
		}
		return eval.Unknown{Told: true}, true
	}
	return v, ok
}

// sample is a wait of a class, at one turn.
func sample(c Class, turn int) eval.Value {
	switch c {
	case Immediate:
		return eval.Int(0)
	case Fixed:
		return eval.Sym{Name: "the wait"}
	case Growing:
		return eval.Expr{Op: "grows", Args: []eval.Value{eval.Int(int64(turn))}}
	case EqualJitter, Jittered:
		return eval.Rand{}
	case Server:
		return eval.Server{}
	}
	return eval.Unknown{}
}

// export writes the facts of the package's exported functions.
func (p *Package) export(found []*Retry) {
	for _, fn := range p.Funcs {
		obj, ok := fn.Object().(*types.Func)
		if !ok || !obj.Exported() || obj.Pkg() != p.SSA.Pkg || fn.Origin() != nil && fn.Origin() != fn {
			continue
		}
		if f := p.summarize(fn, found); f != nil {
			p.Pass.ExportObjectFact(obj, f)
		}
	}
}

// summarize says what callers need to know of a function; nil when it is nothing.
func (p *Package) summarize(fn *ssa.Function, found []*Retry) *Fact {
	f := &Fact{Boundary: p.inside(fn, 0)}
	if f.Boundary == Unknown && p.touches(fn, 2) {
		f.Boundary = Local
	}
	some := f.Boundary != Unknown
	res := fn.Signature.Results()
	if p.Lively(fn) || p.Lively(fn) {
		some = p.waiting(fn, f) || some
	}
	if res.Len() == 1 && eval.IsDuration(res.At(0).Type()) {
		f.Delay = p.returned(fn)
		some = some || f.Delay != Pluggable
	}
	for _, r := range found {
		if i := handedParam(r, fn); i >= 0 {
			f.Retrier = &Retrier{Param: i, Class: r.Delay.Class, Pure: r.Pure, Chooses: p.chooses(r)}
			some = true
		}
	}
	if f.Retrier == nil {
		f.Retrier = p.passesOn(fn)
		some = some || f.Retrier != nil
	}
	if f.Boundary == Remote && fails(&ssa.CallCommon{Value: fn}) {
		some = p.answering(fn, f) || some
	}
	if res.Len() == 1 && isBool(res.At(0).Type()) {
		some = p.predicate(fn, f) || some
	}
	if !some {
		return nil
	}
	return f
}

func isBool(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Bool
}

// waiting notes how a function waits.
func (p *Package) waiting(fn *ssa.Function, f *Fact) bool {
	m := &eval.Machine{Lib: p, Fn: fn}
	m.Run()
	worst := Class(-1)
	for _, w := range m.Left {
		for _, x := range w.Of {
			if x.Weak {
				continue
			}
			if s, ok := x.For.(eval.Sym); ok {
				for i, param := range fn.Params {
					if s.Name == "param 0 "+param.Name() {
						f.Wait = &FactWait{Param: i}
						return true
					}
				}
			}
			for _, v := range eval.Ways(x.For) {
				worst = max(worst, classOf(v))
			}
		}
	}
	if worst < 0 {
		return false
	}
	f.Wait = &FactWait{Param: -1, Class: worst}
	if worst == Fixed && fn.Signature.Params().Len() > 0 {
		f.Wait.Class = Pluggable // it may depend on what it is given
	}
	return true
}

// returned is the class of the duration that a function returns. One that is given
// the number of the attempt is asked for two of them.
func (p *Package) returned(fn *ssa.Function) Class {
	var keys []string
	class := Pluggable
	for n := range 2 {
		args := make([]eval.Value, len(fn.Params))
		numbered := false
		for i, param := range fn.Params {
			if isInt(param.Type()) {
				args[i] = eval.Int(int64(n + 1))
				numbered = true
			}
		}
		m := &eval.Machine{Lib: p, Fn: fn, Args: args}
		m.Run()
		key := ""
		for _, v := range eval.Ways(m.Returned) {
			c := classOf(v)
			if c == Pluggable || m.Over() {
				return Pluggable
			}
			class = max(class, c)
			key += eval.Key(v) + ";"
		}
		keys = append(keys, key)
		if !numbered {
			break
		}
	}
	if class == Fixed && len(keys) == 2 && keys[0] != keys[1] {
		return Growing
	}
	if class == Fixed && (len(keys) == 2 || fn.Signature.Params().Len() > 0 || fn.Signature.Recv() != nil) {
		return Pluggable
	}
	return class
}

// handedParam is the parameter of fn that a retry of it calls again, or -1.
func handedParam(r *Retry, fn *ssa.Function) int {
	outer := r.Fn
	for outer.Parent() != nil {
		outer = outer.Parent()
	}
	if outer != fn || !r.Callback {
		return -1
	}
	v := r.Ops[0].Common().Value
	for range 4 {
		switch x := v.(type) {
		case *ssa.UnOp:
			v = x.X
		case *ssa.FreeVar:
			for i, fv := range r.Fn.FreeVars {
				if fv == x {
					return freeParam(fn, r.Fn, i)
				}
			}
			return -1
		case *ssa.Alloc:
			for _, ref := range *x.Referrers() {
				if st, ok := ref.(*ssa.Store); ok && st.Addr == ssa.Value(x) {
					v = st.Val
				}
			}
		}
	}
	param, ok := v.(*ssa.Parameter)
	if !ok {
		return -1
	}
	return slices.Index(fn.Params, param)
}

// passesOn says of a function that hands a parameter on to a retry helper of another
// package; nil for any other.
func (p *Package) passesOn(fn *ssa.Function) *Retrier {
	for c := range Calls(fn) {
		by, i := p.foreignRetrier(c.Common())
		if by == nil || i >= len(c.Common().Args) {
			continue
		}
		v := c.Common().Args[i]
		for {
			if m, ok := v.(*ssa.MakeInterface); ok {
				v = m.X
			} else if t, ok := v.(*ssa.ChangeType); ok {
				v = t.X
			} else {
				break
			}
		}
		param, ok := v.(*ssa.Parameter)
		if mc, isLit := v.(*ssa.MakeClosure); isLit { // func() error { return operation() }
			for j := range mc.Bindings {
				if n := freeParam(fn, mc.Fn.(*ssa.Function), j); n >= 0 && fn.Params[n].Type().Underlying() != nil && isFunc(fn.Params[n].Type()) {
					param, ok = fn.Params[n], true
				}
			}
		}
		if ok {
			on := *by
			on.Param = slices.Index(fn.Params, param)
			return &on
		}
	}
	return nil
}

func isFunc(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// freeParam is the parameter of outer that a literal in it captures as its i-th.
func freeParam(outer, lit *ssa.Function, i int) int {
	for _, b := range outer.Blocks {
		for _, in := range b.Instrs {
			mc, ok := in.(*ssa.MakeClosure)
			if !ok || mc.Fn != ssa.Value(lit) || i >= len(mc.Bindings) {
				continue
			}
			v := mc.Bindings[i]
			if a, ok := v.(*ssa.Alloc); ok {
				for _, ref := range *a.Referrers() {
					if st, ok := ref.(*ssa.Store); ok && st.Addr == v {
						if param, ok := st.Val.(*ssa.Parameter); ok {
							return slices.Index(outer.Params, param)
						}
					}
				}
			}
			if param, ok := v.(*ssa.Parameter); ok {
				return slices.Index(outer.Params, param)
			}
		}
	}
	return -1
}

// chooses reports whether a retry looks at the error of its operation before it goes
// on: not every failure is tried again.
func (p *Package) chooses(r *Retry) bool {
	m := p.Carry(r.Fn, r.Loop, r.Ops[0], eval.Scene{Outcome: eval.Answered, Status: 400})
	certain, _ := m.Again()
	return !certain
}

// answering notes for which responses a function returns an error, and what it
// sends.
func (p *Package) answering(fn *ssa.Function, f *Fact) bool {
	for _, grpc := range []bool{false, true} {
		for i, resp := range response.All(grpc) {
			m := &eval.Machine{Lib: p, Fn: fn, Scene: sceneOf(resp), Inside: true}
			m.Run()
			if i == 0 && !m.Answered || m.Over() {
				break
			}
			if grpc {
				f.GRPC = true
			} else {
				f.HTTP = true
			}
			if !certainlyFails(m.Returned) {
				continue
			}
			if grpc {
				f.Codes = append(f.Codes, resp.Number)
			} else {
				f.Fails = append(f.Fails, resp.Number)
			}
		}
	}
	m := &eval.Machine{Lib: p, Fn: fn, Scene: eval.Scene{Outcome: eval.Lost, Deep: true}, Inside: true}
	m.Run()
	for _, s := range m.Sends {
		out := FactSend{Method: eval.Text(s.Method), Param: -1, Keyed: s.Keyed}
		if sym, ok := s.Method.(eval.Sym); ok && out.Method == "" {
			for i, param := range fn.Params {
				if sym.Name == "param 0 "+param.Name() || sym.Name == "param 0 "+param.Name()+".Method" {
					out.Param = i
				}
			}
		}
		if (out.Method != "" || out.Param >= 0) && len(f.Sends) < 8 && !slices.Contains(f.Sends, out) {
			f.Sends = append(f.Sends, out)
		}
	}
	return f.HTTP || f.GRPC || len(f.Sends) > 0
}

// certainlyFails reports whether the last of some results is an error on each way.
func certainlyFails(v eval.Value) bool {
	if t, ok := v.(eval.Tuple); ok {
		if len(t.Of) == 0 {
			return false
		}
		v = t.Of[len(t.Of)-1]
	}
	if v == nil {
		return false
	}
	for _, w := range eval.Ways(v) {
		if !eval.NotNil(w) {
			return false
		}
	}
	return true
}

// predicate notes for which responses a function that is given one, its status or an
// error says yes.
func (p *Package) predicate(fn *ssa.Function, f *Fact) bool {
	for _, grpc := range []bool{false, true} {
		for _, resp := range response.All(grpc) {
			yes, no, asked := p.Says(fn, resp)
			if !asked {
				break
			}
			switch {
			case yes && !grpc:
				f.Yes = append(f.Yes, resp.Number)
			case no && !grpc:
				f.No = append(f.No, resp.Number)
			case yes:
				f.YesCode = append(f.YesCode, resp.Number)
			case no:
				f.NoCode = append(f.NoCode, resp.Number)
			}
		}
	}
	return len(f.Yes)+len(f.No)+len(f.YesCode)+len(f.NoCode) > 0
}

// Says asks a predicate about a response: whether it is certainly true, or false, and
// whether it looked at the response at all.
func (p *Package) Says(fn *ssa.Function, resp Response) (yes, no, asked bool) {
	m := &eval.Machine{Lib: p, Fn: fn, Scene: sceneOf(resp), Args: make([]eval.Value, len(fn.Params))}
	given := false
	for i, param := range fn.Params {
		t := param.Type()
		switch {
		case eval.IsResponse(t):
			if resp.GRPC {
				return false, false, false
			}
			m.Args[i] = eval.Answer{}
		case eval.IsError(t):
			m.Args[i] = eval.Failure{}
			if hasResponseParam(fn) {
				m.Args[i] = eval.Nil{}
				continue
			}
		case isCode(t) == resp.GRPC && isInt(t) && (resp.GRPC || eval.IsStatusName(param.Name())):
			n := eval.Int(resp.Number)
			n.Told = true
			m.Args[i] = n
			m.Looked = true
		default:
			continue
		}
		given = true
	}
	if !given {
		return false, false, false
	}
	m.Run()
	v := m.Returned
	if t, ok := v.(eval.Tuple); ok && len(t.Of) > 0 {
		v = t.Of[0]
	}
	if v == nil || m.Over() {
		return false, false, m.Looked
	}
	y, n := eval.Truth(v)
	return y && !n, n && !y, m.Looked
}

func hasResponseParam(fn *ssa.Function) bool {
	return slices.ContainsFunc(fn.Params, func(p *ssa.Parameter) bool { return eval.IsResponse(p.Type()) })
}

// isCode reports whether t is the type of gRPC's codes.
func isCode(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Code" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "google.golang.org/grpc/codes"
}
