package retryloop

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/bound"
	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// RetriedStatuses returns the responses after which the region may begin another
// attempt, since no branch that looks at them certainly leads elsewhere. It is
// empty when the region does not look at statuses, or cannot be judged. guessed says that a setting decides, of which only the name or
// the default is known.
func (r *Region) RetriedStatuses(grpc bool) (retried codeset.Set, guessed bool) {
	switch {
	case r.Loop == nil && r.self == nil: // what is handed over is repeated elsewhere
		return codeset.Set{}, false
	case r.Loop == nil:
		return r.f.pkg.Judge.Recursed(r.f.Scope, r.self, grpc)
	}
	if len(r.Tests) == 0 && len(r.Ops) == 1 { // a restart
		return r.f.pkg.Judge.Restarted(r.f.Scope, r.Loop, r.Ops[0], grpc)
	}
	if !r.Pure && r.asTold() {
		return codeset.Set{}, false
	}
	var failures []dataflow.Edge
	if !r.Pure { // which goes on after a success too
		for _, t := range r.Tests {
			failures = append(failures, t.fail())
		}
	}
	return r.f.pkg.Judge.Retried(r.f.Scope, r.Loop, r.Ops, failures, grpc)
}

// asTold reports whether the region waits for as long as the server says, and not
// otherwise: it goes on after what the server has told it to come back for.
func (r *Region) asTold() bool { return r.Delay.Class == fact.Server && !r.Delay.Mixed }

// OnStatus reports whether a branch of the region itself looks at a status.
// Only such a region has a response at hand when it fails.
func (r *Region) OnStatus() bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool { return t.Status })
}

// OnCertificateError reports whether a branch on an error of crypto/x509 leads
// to another attempt.
func (r *Region) OnCertificateError() bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool { return status.CertificateTest(t.If.Cond) })
}

// Doubtful returns those of some responses between which and the next attempt a
// branch that cannot be judged may leave the region: the body of the response may
// say more than its status.
func (r *Region) Doubtful(of codeset.Set, grpc bool) (doubtful codeset.Set) {
	for _, open := range r.mayEnd(of, grpc) {
		doubtful = doubtful.Or(open.Of)
	}
	return doubtful
}

// Consults reports whether one of the branches that make the region doubtful asks
// a function about the response, or its error. What it says cannot be known, so
// that the region may well tell final responses from others.
func (r *Region) Consults(of codeset.Set, grpc bool) bool {
	return slices.ContainsFunc(r.mayEnd(of, grpc), func(open status.Open) bool { return r.consults(open.If.Cond) })
}

// mayEnd returns the branches that make the region doubtful.
func (r *Region) mayEnd(of codeset.Set, grpc bool) []status.Open {
	if r.Loop == nil {
		return nil
	}
	return slices.DeleteFunc(r.f.pkg.Judge.Undecided(r.f.Scope, r.Loop, of, grpc), func(open status.Open) bool {
		return !r.mayLeave(open.If.Block()) || r.plainExit(open.If.Cond, 0)
	})
}

// consults looks for such a function in a condition.
func (r *Region) consults(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.BinOp:
		return r.consults(v.X) || r.consults(v.Y)
	case *ssa.UnOp:
		if v.Op == token.NOT {
			return r.consults(v.X)
		}
	}
	return slices.ContainsFunc(r.f.Origins(v, r.Loop), r.aboutResponse)
}

// aboutResponse reports whether a call is given a response, its status or an
// error, or captures one.
func (r *Region) aboutResponse(c *ssa.Call) bool {
	given := slices.Clip(c.Common().Args)
	if mc, ok := c.Common().Value.(*ssa.MakeClosure); ok {
		given = append(given, mc.Bindings...)
	}
	return !slices.Contains(r.Ops, c) && slices.ContainsFunc(given, func(v ssa.Value) bool {
		t := v.Type()
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		return dataflow.IsError(t) || strings.HasSuffix(dataflow.TypeName(t), "Response") || status.IsStatus(v)
	})
}

// tellingWord marks functions that may know what became of the attempt before.
var tellingWord = regexp.MustCompile(`(?i)retr|again|err|fail|permanent|final|fatal|status|resp|result|last|prev`)

// asksBefore reports whether a call of the loop is made ahead of each attempt, and is
// not told what became of the one before: whether the client was closed, whether a
// budget is left, whose turn it is.
func (r *Region) asksBefore(c *ssa.Call) bool {
	return !tellingWord.MatchString(dataflow.CalleeName(c.Common())) && !r.aboutResponse(c) &&
		!slices.ContainsFunc(r.Ops, func(op *ssa.Call) bool { return !dataflow.Before(c, op) })
}

// Guessed reports whether a test of the region compares a status with a setting
// of which only the name is known, or what it is by default.
func (r *Region) Guessed() bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool { return t.Guessed })
}

// mayLeave reports whether one branch of b leads to no further attempt and the
// other may.
func (r *Region) mayLeave(b *ssa.BasicBlock) bool {
	_, one := r.Loop.Walk(b.Succs[0], nil)
	_, other := r.Loop.Walk(b.Succs[1], nil)
	return one != other
}

// tells reports whether a value of a type, or of what it points to, tells of a
// response: what is read of it may be what errors.As has found.
func tells(t types.Type) bool {
	for range 2 {
		if status.Carries(t) {
			return true
		}
		p, ok := t.Underlying().(*types.Pointer)
		if !ok {
			return false
		}
		t = p.Elem()
	}
	return status.Carries(t)
}

// plainExit reports whether a condition says nothing of the response: a counter,
// a clock, a context, an error of something else, a setting. What is computed
// outside of the loop cannot depend on a response in it.
func (r *Region) plainExit(v ssa.Value, depth int) bool {
	if depth > 5 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Const, *ssa.Parameter, *ssa.FreeVar, *ssa.Global:
		return true
	case *ssa.UnOp:
		if v.Op == token.MUL {
			if fa, ok := v.X.(*ssa.FieldAddr); ok && tells(fa.X.Type()) {
				return false // more than the status of what an error holds
			}
			return len(r.f.Origins(v, r.Loop)) == 0
		}
		return r.plainExit(v.X, depth+1)
	case *ssa.BinOp:
		if dataflow.IsNil(v.Y) && dataflow.IsError(v.X.Type()) || bound.CountsIn(r.f.Func, v, r.Loop) || dataflow.Timely(v.X, 0) || dataflow.Timely(v.Y, 0) {
			return true
		}
		return r.plainExit(v.X, depth+1) && r.plainExit(v.Y, depth+1)
	case *ssa.Extract: // a case of a select, a turn of a range
		switch t := v.Tuple.(type) {
		case *ssa.Select, *ssa.Next:
			return true
		case *ssa.Call:
			return r.asksBefore(t)
		}
	case *ssa.Call:
		return dataflow.CalleePkg(v.Common()) == "time" || dataflow.CalleePkg(v.Common()) == "context" || r.asksBefore(v)
	case *ssa.Phi:
		return !slices.ContainsFunc(v.Edges, func(e ssa.Value) bool { return e != v && !r.plainExit(e, depth+1) })
	}
	in, isInstr := v.(ssa.Instruction)
	return !isInstr || !r.Loop.Contains(in)
}
