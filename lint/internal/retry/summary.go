package retry

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/response"
)

// export writes the facts of the package's exported functions.
func (p *Package) export(found []*Retry) {
	if p.SSA.Pkg.Name() == "main" {
		return // which nothing imports
	}
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

// summarized carries out a function for its summary. What calls one in which another run
// was cut off before anything was sent would be cut off too.
func (p *Package) summarized(m *eval.Machine) {
	for c := range Calls(m.Fn) {
		if p.heavy[eval.Static(c.Common())] {
			return
		}
	}
	m.Run()
	for _, fn := range m.Heavy {
		p.heavy[fn] = p.heavy[fn] || len(m.Sends) == 0
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
	if p.Lively(fn) {
		some = p.waiting(fn, f) || some
	}
	if res.Len() == 1 && eval.IsDuration(res.At(0).Type()) {
		f.Delay = p.returned(fn)
		some = some || f.Delay != Pluggable
	}
	for _, r := range found {
		if r.Fn == fn && r.Pure && !r.Callback && !r.Waiting {
			f.Attempts, some = -1, true
			if r.Bound.Known {
				f.Attempts = int(r.Bound.Limit)
			}
		}
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

// waiting notes how a function waits.
func (p *Package) waiting(fn *ssa.Function, f *Fact) bool {
	m := &eval.Machine{Lib: p, Fn: fn}
	p.summarized(m)
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
		var key strings.Builder
		for _, v := range eval.Ways(m.Returned) {
			c := classOf(v)
			if c == Pluggable || m.Over() {
				return Pluggable
			}
			class = max(class, c)
			key.WriteString(eval.Key(v) + ";")
		}
		keys = append(keys, key.String())
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

// answering notes for which responses a function returns an error, and what it
// sends.
func (p *Package) answering(fn *ssa.Function, f *Fact) bool {
	for _, grpc := range []bool{false, true} {
		var m *eval.Machine
		for i, resp := range response.All(grpc) {
			if m == nil || m.Looked { // what looks at no status ends as before
				m = &eval.Machine{Lib: p, Fn: fn, Scene: sceneOf(resp), Inside: true}
				p.summarized(m)
			}
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
	p.summarized(m)
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
