package delay

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// OfFunc turns a wait of a function into a fact about the function, for its
// callers: they wait for what they pass, or for as long as the function decides.
// A parameter of -1 stands for a wait that the function decides by itself.
func OfFunc(s *fact.Scope, w *Wait) *fact.Wait {
	if w.Fact != nil {
		return &fact.Wait{Param: -1, Class: w.Fact.Class, Default: w.Fact.Default}
	}
	if p := uncapped(w.D); p != nil {
		return &fact.Wait{Param: slices.Index(s.Fn.Params, p)}
	}
	// Not the parameter itself, so the helper has a say.
	sl := newSlicer(nil)
	sl.walk(w.D, &frame{s: s})
	d := sl.fl.delay()
	if d.Class == fact.Fixed && d.Param { // computed from a parameter: the caller decides
		d.Class = fact.Pluggable
		if sl.fl.scaled {
			d.Class = fact.Growing
		}
	}
	return &fact.Wait{Param: -1, Class: d.Class, Default: d.Default}
}

// uncapped returns the parameter that a duration is, cut off at a ceiling or
// not; nil when it is none. A ceiling is a constant or a setting, by if or by
// min: the wait is still the caller's choice.
// A floor by max is not accepted: it may replace what the caller passes at every
// attempt.
func uncapped(v ssa.Value) *ssa.Parameter {
	switch v := dataflow.Strip(v).(type) {
	case *ssa.Parameter:
		return v
	case *ssa.Phi:
		var p *ssa.Parameter
		for _, e := range v.Edges {
			switch q := dataflow.Strip(e).(type) {
			case *ssa.Parameter:
				if p != nil && p != q {
					return nil
				}
				p = q
			case *ssa.Const: // a ceiling
			case *ssa.UnOp: // a setting
				if q.Op != token.MUL {
					return nil
				}
			default:
				return nil
			}
		}
		return p
	case *ssa.Call:
		if b, ok := v.Common().Value.(*ssa.Builtin); ok && b.Name() == "min" {
			for _, a := range v.Common().Args {
				if p, ok := dataflow.Strip(a).(*ssa.Parameter); ok {
					return p
				}
			}
		}
	}
	return nil
}

// Result classifies the duration that the function returns, if that is all it
// returns. Callers in other packages sleep for it, and cannot see how it is made.
// A function with several results is left as Pluggable, which silences the
// rules.
func Result(sc *fact.Scope) fact.Class {
	res := sc.Fn.Signature.Results()
	if res.Len() != 1 || !dataflow.IsDuration(res.At(0).Type()) {
		return fact.Pluggable
	}
	s := newSlicer(nil)
	for ret := range dataflow.Instrs[*ssa.Return](sc.Fn) {
		s.walk(ret.Results[0], &frame{s: sc})
	}
	d := s.fl.delay()
	switch {
	case d.Class != fact.Fixed || !d.Param:
		return d.Class
	case s.fl.number: // the number of the attempt, most likely
		return fact.Growing
	}
	return fact.Pluggable // a duration, or a setting in what is given: the caller's
}
