package retryloop

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// immediate reports whether a region without any wait is worth a word: one that
// says that it retries, goes to a boundary, and has no backoff hidden in a
// callee. A loop that resolves a conflict, takes the next candidate or is paced
// by a channel goes on at once for a reason.
// It asks for more evidence than a loop with a wait needs.
func (r *Region) immediate() bool {
	if !r.Pure || r.Loop == nil || !r.Spoken || r.Waiting {
		return false
	}
	// Two attempts are a fallback as often as a retry.
	if r.Bound.Known && r.Bound.Limit <= 2 || r.candidates() || r.inRounds() {
		return false
	}
	// What has gone meanwhile is looked for again at once, or made anew, and an
	// attempt that ran into its limit has taken that time.
	if onlyBy(goneWord, r.Tests, r.Loop) {
		return false
	}
	for in := range dataflow.InstrsIn[ssa.Instruction](r.Fn, r.Loop) {
		switch in := in.(type) {
		case *ssa.Call:
			name := dataflow.CalleeName(in.Common())
			if conflictWord.MatchString(name) || hiddenPause.MatchString(name) && !slices.Contains(r.Ops, in) {
				return false
			}
			if s := r.f.Known.Of(in.Common()); s != nil && (s.Wait != nil || s.Retries && !r.f.pkg.retriesAtOnce(in.Common())) || paces(in.Common()) {
				return false
			}
		case *ssa.Select:
			return false
		case *ssa.UnOp:
			if in.Op == token.ARROW {
				return false
			}
		}
	}
	return true
}

// retriesAtOnce reports whether a function of the package retries, and none of its
// retries waits.
func (p *finders) retriesAtOnce(c *ssa.CallCommon) bool {
	fn := p.Known.Body(c)
	if fn == nil {
		return false
	}
	found := p.of(fn).regions()
	return len(found) > 0 && !slices.ContainsFunc(found, func(r *Region) bool { return len(r.Waits) > 0 })
}

// paces reports whether c calls a function that waits on channels, and so paces
// its caller.
func paces(c *ssa.CallCommon) bool {
	fn := dataflow.Static(c)
	if fn == nil {
		return false
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		switch in := in.(type) {
		case *ssa.Select:
			if in.Blocking {
				return true
			}
		case *ssa.UnOp:
			if in.Op == token.ARROW {
				return true
			}
		}
	}
	return false
}

var (
	// hiddenPause marks calls that may wait in a way that is not seen: a policy's
	// next step, a limiter, a connection that is made anew. conflictWord marks those
	// that resolve a conflict, which may go on at once.
	hiddenPause = regexp.MustCompile(`(?i)retry|backoff|next|ongoing|continue|allow|wait|sleep|delay|pause|limit|refresh|reconnect|reset|renew|resolve|rotate|rand|attempt`)
	// goneWord marks errors after which something is tried at once: what was kept has
	// gone meanwhile, or time has.
	goneWord     = regexp.MustCompile(`(?i)not.?found|no.?rows|gone|expired|stale|closed|bad.?conn|EOF$|deadline|timed?.?out`)
	conflictWord = regexp.MustCompile(`(?i)conflict|exist|precondition|collision|modified|stale|CompareAnd|Is(NotFound|Gone)|Version`)
)

// inRounds reports whether the operations stand in a loop inside of the region's:
// each turn goes through all candidates, and is a failover before it is a retry.
func (r *Region) inRounds() bool {
	return slices.ContainsFunc(r.Ops, func(c *ssa.Call) bool { return r.f.Innermost[c.Block()] != r.Loop })
}

// candidates reports whether each attempt goes to another receiver or with
// other arguments that the loop itself obtains: failover, not retry. Numbers and
// texts may vary, such as the number of the attempt, and so may the error of the
// last one.
func (r *Region) candidates() bool {
	fromLoop := func(v ssa.Value) bool {
		p, ok := v.(*ssa.Phi)
		if !ok || !r.Loop.Contains(p) {
			c, isCall := originOf(v).(*ssa.Call)
			return isCall && r.Loop.Contains(c) && !send.IsRequest(v.Type())
		}
		_, basic := p.Type().Underlying().(*types.Basic)
		return !basic && !dataflow.IsError(p.Type())
	}
	for _, op := range r.Ops {
		com := op.Common()
		if com.IsInvoke() && fromLoop(com.Value) {
			return true
		}
		for i, a := range com.Args {
			if i == 0 && com.Signature().Recv() != nil && fromLoop(a) {
				return true
			}
			if _, ok := a.(*ssa.Phi); ok && fromLoop(a) {
				return true
			}
		}
	}
	return false
}

// originOf returns the call that v is a result of, or v.
func originOf(v ssa.Value) ssa.Value {
	if e, ok := v.(*ssa.Extract); ok {
		return e.Tuple
	}
	return v
}
