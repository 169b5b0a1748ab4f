package retryloop

import (
	"go/token"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// A loop that starts something again has no success to end with: what it calls
// runs until it fails, so that each turn is a retry of its start. A job that is
// done once in a while looks the same, with a call that does short work. The two
// differ in what the call is, which its name says and its body confirms, and in
// the name of the wait.

var (
	// lastingWord marks functions that go on until something fails.
	lastingWord = regexp.MustCompile(`(?i)^(run|serve|subscribe|resubscribe|watch|listen|consume|stream|tail|follow|receive|monitor|connect.*and|(re)?connect|dial|session|start)|(loop|forever|until)$|connection`)
	// startingWord marks those of them whose start is a call to a server, whatever
	// they do then.
	startingWord = regexp.MustCompile(`(?i)subscribe|watch|listen|consume|stream|connect|dial`)
	// restartWord marks code that says that it starts something again.
	restartWord = regexp.MustCompile(`(?i)restart|forever|supervis|reconnect|resubscribe|keep.?(alive|running)|respawn`)
	// periodWord marks waits between the turns of a job.
	periodWord = regexp.MustCompile(`(?i)interval|period|every|poll|tick|refresh|frequency|cadence`)
)

// supervision judges a loop that no region was found in, or only one that a
// success ends as well: nil unless it starts something again which has ended.
func (f *finder) supervision(l *dataflow.Loop) *Region {
	if f.Innermost[l.Header] != l || dataflow.ItemLoop(f.Func, l) {
		return nil
	}
	r := &Region{Fn: f.Fn, Loop: l, f: f}
	sure := false
	for _, b := range f.Fn.Blocks {
		if f.Innermost[b] != l {
			continue
		}
		for _, in := range b.Instrs {
			if c, ok := in.(*ssa.Call); ok {
				if lasts, proved := f.lasting(c); lasts {
					r.Ops, sure = append(r.Ops, c), proved
					continue
				}
			}
			for _, w := range delay.WaitsOf(f.Scope, in, l) {
				if w.Ticker {
					return nil
				}
				r.Waits = append(r.Waits, w)
			}
		}
	}
	// One call in each turn, and nothing but the end of the program or of a
	// context beside it: a loop of many parts is a protocol of its own.
	if len(r.Ops) != 1 || len(r.Waits) == 0 || f.endsBy(l, r.Ops[0]) {
		return nil
	}
	f.describe(r)
	name := r.Delay.Name
	if periodWord.MatchString(name) && !saysRetry(name) && !restartWord.MatchString(name) {
		return nil
	}
	if !sure && !r.Spoken && !startingWord.MatchString(dataflow.CalleeName(r.Ops[0].Common())) {
		return nil // no more than a name that may mean a job
	}
	r.Starts = sure
	return r
}

// lasting reports whether a call runs until it fails, and whether a body proves
// it. A function of the package must bear out what its name says: it blocks in a
// loop that only leaves with the function. One that is handed over is judged by
// what its callers hand.
func (f *finder) lasting(c *ssa.Call) (lasts, proved bool) {
	com := c.Common()
	if send.Ignored(com) || !dataflow.TellsNothing(com.Signature()) {
		return false, false
	}
	if p, ok := com.Value.(*ssa.Parameter); ok && !com.IsInvoke() {
		lasts = f.handsLasting(p)
		return lasts, lasts
	}
	name := dataflow.CalleeName(com)
	if !lastingWord.MatchString(name) {
		return false, false
	}
	if fn := f.Known.Body(com); fn != nil {
		lasts = f.blocks(fn)
		return lasts, lasts
	}
	// Of other packages only the name is known, and whether it can be stopped.
	return (startingWord.MatchString(name) || restartWord.MatchString(f.Fn.Name())) &&
		slices.ContainsFunc(com.Args, func(a ssa.Value) bool { return dataflow.IsContext(a.Type()) }), false
}

// handsLasting reports whether all callers of the function hand a function that
// lasts.
func (f *finder) handsLasting(p *ssa.Parameter) bool {
	i := slices.Index(f.Fn.Params, p)
	calls, _ := f.Known.Callers(f.Fn)
	if i < 0 || len(calls) == 0 {
		return false
	}
	for _, c := range calls {
		if i >= len(c.Args) {
			return false
		}
		fn, _ := dataflow.FuncValue(c.Args[i])
		if fn == nil || !f.Known.Own(fn) || !f.blocks(fn) {
			return false
		}
	}
	return true
}

// blocks reports whether a function, or what it calls, stays in a loop that
// waits for what others send: a channel, a reader, a stream. It looks three calls
// deep.
func (f *finder) blocks(fn *ssa.Function) bool {
	return dataflow.Within(fn, 3, f.Known.Callees, f.waitsForOthers)
}

// waitsForOthers is blocks for the body of one function.
func (f *finder) waitsForOthers(fn *ssa.Function) bool {
	scope := f.Known.Scope(fn)
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		inLoop := scope.Innermost[in.Block()] != nil
		switch in := in.(type) {
		case *ssa.Select:
			if in.Blocking && (inLoop || len(in.States) > 1) {
				return true
			}
		case *ssa.UnOp:
			if in.Op == token.ARROW && inLoop {
				return true
			}
		case *ssa.Call:
			if inLoop && receiveWord.MatchString(dataflow.CalleeName(in.Common())) {
				return true
			}
		}
	}
	return false
}

// receiveWord marks calls that wait for what another one sends.
var receiveWord = regexp.MustCompile(`(?i)^(recv|receive|read|next|accept|poll|fetch|wait|consume|scan)`)

// endsBy reports whether the loop ends by what the call returns: then it has a
// success, and is no supervisor.
func (f *finder) endsBy(l *dataflow.Loop, op *ssa.Call) bool {
	for b := range l.Blocks {
		br := dataflow.IfOf(b)
		if br == nil || !slices.Contains(f.Origins(condition(br), l), op) {
			continue
		}
		for _, s := range b.Succs {
			if _, back := l.Walk(s, nil); !back && s != l.Header {
				return true
			}
		}
	}
	return false
}

// condition is what a branch looks at: of a comparison, its left side.
func condition(br *ssa.If) ssa.Value {
	if cmp, ok := br.Cond.(*ssa.BinOp); ok {
		return cmp.X
	}
	return br.Cond
}
