package retryloop

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// WaitFact says that a function waits.
type WaitFact struct {
	Param int   // the parameter that says how long, or -1
	Class Class // how the wait develops, when Param is -1
	Bare  bool  // the function does nothing else of note
}

// Send is one HTTP request that a function sends.
type Send struct {
	Method string // "" when Param says it
	Param  int    // the parameter that holds the method, or -1
	Keyed  bool   // an idempotency key is set on it
	Depth  int    // calls between the function and the request
}

// Summary is what callers need to know of a function. As a fact it crosses
// package boundaries.
type Summary struct {
	Wait     *WaitFact
	Delay    Class // of a returned duration
	Retrier  bool  // calls a function parameter again when it fails
	Retries  bool  // retries something itself
	Attempts int   // of a Retrier or of Retries; 0 when not known
	Sends    []Send
	// Retried holds the requests that the function itself retries although
	// its caller chooses the method.
	Retried []Send
	Remote  bool // crosses an integration boundary
	Local   bool // touches files or processes of the machine
	// Fails holds, bit by bit in the order of Statuses, for which statuses of
	// a response the function certainly returns an error.
	Fails uint16
	// Yes holds for which statuses a predicate certainly returns true.
	Yes uint16
}

// AFact makes Summary a fact.
func (*Summary) AFact() {}

func (s *Summary) String() string {
	return fmt.Sprintf("wait=%v delay=%d retrier=%v retries=%v sends=%v remote=%v fails=%b yes=%b",
		s.Wait != nil, s.Delay, s.Retrier, s.Retries, s.Sends, s.Remote, s.Fails, s.Yes)
}

func (s *Summary) empty() bool {
	return s.Wait == nil && s.Delay == Pluggable && !s.Retrier && !s.Retries && len(s.Sends) == 0 && len(s.Retried) == 0 && !s.Remote && !s.Local && s.Fails == 0 && s.Yes == 0
}

// Table computes and remembers what is known of a package's functions.
type Table struct {
	pass      *analysis.Pass
	pkg       *ssa.Package
	memo      map[*ssa.Function]*Summary
	scopes    map[*ssa.Function]*Scope
	summarize func(*Scope, *Summary)
}

// NewTable returns the table of a package, which may be nil. summarize fills in
// what is known of one of its functions.
func newTable(pass *analysis.Pass, pkg *ssa.Package, summarize func(*Scope, *Summary)) *Table {
	return &Table{pass: pass, pkg: pkg, memo: map[*ssa.Function]*Summary{}, scopes: map[*ssa.Function]*Scope{}, summarize: summarize}
}

// Scope is one function, with what is known of the others of its package.
type Scope struct {
	*Func
	known *Table
}

// of returns the summary of the function that c calls, or nil when nothing is
// known of it.
func (s *Table) of(c *ssa.CallCommon) *Summary {
	fn := static(c)
	if fn != nil && len(fn.Blocks) > 0 && s.own(fn) {
		if boundMethod(c.StaticCallee()) == fn {
			return s.local(fn).bound()
		}
		return s.local(fn)
	}
	obj := Callee(c)
	if obj == nil || obj.Pkg() == nil || obj.Pkg() == s.pass.Pkg {
		return nil
	}
	var fact Summary
	if s.pass.ImportObjectFact(obj, &fact) {
		return &fact
	}
	return nil
}

// bound is the summary of a method value, whose calls leave the receiver out.
func (s *Summary) bound() *Summary {
	b := *s
	if s.Wait != nil && s.Wait.Param >= 0 {
		w := *s.Wait
		w.Param--
		b.Wait = &w
	}
	b.Sends = withoutReceiver(s.Sends)
	b.Retried = withoutReceiver(s.Retried)
	return &b
}

func withoutReceiver(sends []Send) []Send {
	sends = slices.Clone(sends)
	for i := range sends {
		if sends[i].Param >= 0 {
			sends[i].Param--
		}
	}
	return sends
}

func (s *Table) own(fn *ssa.Function) bool {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn.Pkg == s.pkg || fn.Origin() != nil && fn.Origin().Pkg == s.pkg
}

// scope returns the scope of fn, made once.
func (s *Table) scope(fn *ssa.Function) *Scope {
	f := s.scopes[fn]
	if f == nil {
		f = &Scope{Func: newFunc(fn), known: s}
		s.scopes[fn] = f
	}
	return f
}

// local computes the summary of a function of this package. A recursive call
// sees the empty summary.
func (s *Table) local(fn *ssa.Function) *Summary {
	if sum, ok := s.memo[fn]; ok {
		return sum
	}
	sum := &Summary{}
	s.memo[fn] = sum
	s.summarize(s.scope(fn), sum)
	return sum
}

// summarize fills in what callers need to know of a function.
func (p *finders) summarize(s *Scope, sum *Summary) {
	calls(s, sum)
	if len(s.fn.Blocks) > 0 && s.fn.Signature.Results().Len() > 0 {
		sum.Delay = delayResult(s)
		sum.Fails, sum.Yes = p.judge.statusOutcome(s)
	}
	for _, r := range p.of(s.fn).regions() {
		noteRetry(sum, r)
	}
}

// calls gathers what a function's calls do: waits outside loops, requests,
// remote calls.
func calls(s *Scope, sum *Summary) {
	keyed := mentionsKey(s.fn)
	others := 0
	for _, b := range s.fn.Blocks {
		for _, in := range b.Instrs {
			c, isCall := in.(*ssa.Call)
			if s.innermost[b] == nil && sum.Wait == nil {
				if w := waitOf(s, in, nil); w != nil && (w.D != nil || w.Fact != nil) && !w.Ticker {
					sum.Wait = waitFact(s, w)
					continue
				}
			}
			if a, ok := in.(*ssa.Alloc); ok {
				for _, st := range methodStores(a) {
					if m, ok := ConstString(st.Val); ok {
						sum.addSend(Send{Method: strings.ToUpper(m), Param: -1, Keyed: keyed})
					}
				}
			}
			if !isCall {
				continue
			}
			if !onlyComputes(CalleePkg(c.Common())) && CalleePkg(c.Common()) != "" {
				others++
			}
			callEffects(s.known, c.Common(), keyed, sum)
		}
	}
	if sum.Wait != nil {
		sum.Wait.Bare = others <= 3 && !sum.Remote && len(sum.Sends) == 0 && tellsNothing(s.fn.Signature)
	}
}

func callEffects(known *Table, c *ssa.CallCommon, keyed bool, sum *Summary) {
	switch boundaryOf(c) {
	case Remote:
		sum.Remote = true
	case Local:
		sum.Local = true
	}
	for _, snd := range directSend(c) {
		snd.Keyed = snd.Keyed || keyed
		sum.addSend(snd)
	}
	inner := known.of(c)
	if inner == nil {
		return
	}
	sum.Remote = sum.Remote || inner.Remote
	sum.Local = sum.Local || inner.Local
	for _, snd := range inner.Sends {
		if snd.Depth >= 3 {
			continue
		}
		if snd.Param >= 0 {
			snd.Method, snd.Param = methodArg(c, snd.Param)
		}
		if snd.Method == "" && snd.Param < 0 {
			continue
		}
		snd.Depth++
		snd.Keyed = snd.Keyed || keyed
		sum.addSend(snd)
	}
}

// noteRetry notes that the function has the region r.
func noteRetry(s *Summary, r *Region) {
	if !r.Pure || r.Waiting {
		return
	}
	s.Retries = true
	s.Retrier = s.Retrier || r.Callback
	if r.Bound.Known {
		s.Attempts = int(r.Bound.Limit)
	}
	if r.Keyed() || r.OnlyRefused() {
		return
	}
	for _, snd := range r.Sends() {
		if snd.Param >= 0 && !snd.Keyed {
			s.Retried = append(s.Retried, snd)
		}
	}
}

func (s *Summary) addSend(snd Send) {
	for _, o := range s.Sends {
		if o.Method == snd.Method && o.Param == snd.Param && o.Keyed == snd.Keyed {
			return
		}
	}
	if len(s.Sends) < 8 {
		s.Sends = append(s.Sends, snd)
	}
}

// waitFact turns a wait of f's function into a fact about the function.
func waitFact(s *Scope, w *Wait) *WaitFact {
	if w.Fact != nil {
		return &WaitFact{Param: -1, Class: w.Fact.Class}
	}
	if p := uncapped(w.D); p != nil {
		return &WaitFact{Param: slices.Index(s.fn.Params, p)}
	}
	d := classify(s, w.D, nil, nil)
	if d.Class == Fixed && d.Param { // computed from a parameter: the caller decides
		d.Class = Pluggable
	}
	return &WaitFact{Param: -1, Class: d.Class}
}

// uncapped returns the parameter that a duration is, cut off at a ceiling or
// not; nil when it is none.
func uncapped(v ssa.Value) *ssa.Parameter {
	switch v := strip(v).(type) {
	case *ssa.Parameter:
		return v
	case *ssa.Phi:
		var p *ssa.Parameter
		for _, e := range v.Edges {
			switch q := strip(e).(type) {
			case *ssa.Parameter:
				if p != nil && p != q {
					return nil
				}
				p = q
			case *ssa.Const, *ssa.UnOp: // a ceiling
			default:
				return nil
			}
		}
		return p
	case *ssa.Call:
		if b, ok := v.Common().Value.(*ssa.Builtin); ok && b.Name() == "min" {
			for _, a := range v.Common().Args {
				if p, ok := strip(a).(*ssa.Parameter); ok {
					return p
				}
			}
		}
	}
	return nil
}

// delayResult classifies the duration that the function returns, if it returns
// one.
func delayResult(sc *Scope) Class {
	res := sc.fn.Signature.Results()
	if res.Len() != 1 || !isDuration(res.At(0).Type()) {
		return Pluggable
	}
	s := newSlicer(nil)
	for _, b := range sc.fn.Blocks {
		if r, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok {
			s.walk(r.Results[0], &frame{s: sc})
		}
	}
	d := s.fl.delay()
	if d.Class == Fixed && d.Param { // arithmetic on a parameter: the attempt number, most likely
		return Growing
	}
	return d.Class
}
