package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// resends returns the repetitions of the requests that f is given, in loops in
// which no branch on the failure decides: a policy object is asked whether to go
// on, and for how long to wait.
// Without a wait, a loop follows redirects or renews credentials.
func (f *finder) resends() (found []*Repeat) {
	if !standsIn(f.Fn) {
		return nil
	}
	for _, l := range f.Loops {
		if slices.ContainsFunc(f.regions(), func(r *Region) bool { return r.Loop == l && (r.Pure || r.Harmless()) }) || !f.pauses(l) {
			continue
		}
		for op := range dataflow.InstrsIn[*ssa.Call](f.Fn, l) {
			if f.Innermost[op.Block()] != l || !send.Yields(op.Common()) || !slices.ContainsFunc(op.Common().Args, f.isOwnRequest) {
				continue
			}
			if sends := send.Of(f.Scope, []*ssa.Call{op}); len(sends) > 0 {
				found = append(found, &Repeat{Fn: f.Fn, Call: op, Sends: sends, ByMethod: max(f.asksOf(l, op), f.choice(op, nil))})
			}
		}
	}
	return found
}

// asksOf says whether what is asked about the outcome of op looks at the method,
// too. It may, unless the code that is asked by default can be read.
func (f *finder) asksOf(l *dataflow.Loop, op *ssa.Call) Choice {
	asked, most := false, Blind
	for c := range dataflow.InstrsIn[*ssa.Call](f.Fn, l) {
		if c == op || !slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool { return originOf(a) == ssa.Value(op) }) {
			continue
		}
		if res := c.Common().Signature().Results(); res.Len() > 0 && !dataflow.IsError(res.At(0).Type()) && f.pkg.byDefault(c.Common()) != nil {
			asked = true
		}
		most = max(most, f.pkg.asks(c))
	}
	if !asked {
		return Perhaps
	}
	return most
}

// isOwnRequest reports whether v is a request that f is given.
func (f *finder) isOwnRequest(v ssa.Value) bool { return send.IsRequest(v.Type()) && f.ParamOf(v) >= 0 }

// pauses reports whether a turn of l waits for some time.
func (f *finder) pauses(l *dataflow.Loop) bool {
	for in := range dataflow.InstrsIn[ssa.Instruction](f.Fn, l) {
		if w := delay.WaitOf(f.Scope, in, l); w != nil && !w.Ticker {
			return true
		}
	}
	return false
}
