package retry

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// A loop that starts something again has no success to end with: what it calls runs
// until it fails, so that each turn is a retry of its start. A job that is done once
// in a while looks the same; the two differ in what the call is, which its name says
// and its body confirms, and in the name of the wait.
var (
	// lastingWord marks functions that go on until something fails.
	lastingWord = regexp.MustCompile(`(?i)^(run|serve|subscribe|resubscribe|watch|listen|consume|stream|tail|follow|receive|monitor|connect.*and|(re)?connect|dial|session|start)|(loop|forever|until)$|connection`)
	// startingWord marks those of them whose start is a call to a server.
	startingWord = regexp.MustCompile(`(?i)subscribe|watch|listen|consume|stream|connect|dial`)
	// restartWord marks code that says that it starts something again.
	restartWord = regexp.MustCompile(`(?i)restart|forever|supervis|reconnect|resubscribe|keep.?(alive|running)|respawn`)
	// periodWord marks waits between the turns of a job.
	periodWord = regexp.MustCompile(`(?i)interval|period|every|poll|tick|refresh|frequency|cadence`)
	// receiveWord marks calls that wait for what another one sends.
	receiveWord = regexp.MustCompile(`(?i)^(recv|receive|read|next|accept|poll|fetch|wait|consume|scan)`)
)

// restart judges a loop in which no failure was found to lead to another attempt: nil
// unless it starts something again which has ended.
func (p *Package) restart(fn *ssa.Function, l *eval.Loop, innermost map[*ssa.BasicBlock]*eval.Loop) *Retry {
	var op *ssa.Call
	sure := false
	for c := range Calls(fn) {
		if innermost[c.Block()] != l {
			continue
		}
		if lasts, proved := p.lasting(fn, c); lasts {
			if op != nil {
				return nil // a loop of many parts is a protocol of its own
			}
			op, sure = c, proved
		}
	}
	if op == nil || len(itemsOf(fn, l)) > 0 {
		return nil
	}
	m := p.Carry(fn, l, op, eval.Scene{Outcome: eval.Success, Status: 200})
	if certain, _ := m.Again(); !certain {
		return nil
	}
	a := &attempt{op: op}
	for t := 1; t < eval.MaxTurns; t++ {
		a.turns = append(a.turns, m.Turns[t].Waits)
	}
	r := &Retry{Fn: fn, Loop: l, Ops: []*ssa.Call{op}, Delay: p.delay(a), Starts: sure}
	r.noteWaits(a)
	p.describe(r)
	if len(r.Waits) == 0 || r.Delay.Ticker || periodWord.MatchString(r.Delay.Name) && !SaysRetry(r.Delay.Name) && !restartWord.MatchString(r.Delay.Name) {
		return nil
	}
	if !sure && !r.Spoken && !startingWord.MatchString(eval.CalleeName(op.Common())) {
		return nil // no more than a name that may mean a job
	}
	return r
}

// lasting reports whether a call runs until it fails, and whether a body proves it.
func (p *Package) lasting(fn *ssa.Function, c *ssa.Call) (lasts, proved bool) {
	com := c.Common()
	if ignored(com) || !eval.TellsNothing(com.Signature()) {
		return false, false
	}
	if param, ok := com.Value.(*ssa.Parameter); ok && !com.IsInvoke() {
		lasts = p.handsLasting(fn, param)
		return lasts, lasts
	}
	name := eval.CalleeName(com)
	if !lastingWord.MatchString(name) {
		return false, false
	}
	if body := eval.Static(com); body != nil && len(body.Blocks) > 0 {
		lasts = blocks(body, 3)
		return lasts, lasts
	}
	return (startingWord.MatchString(name) || restartWord.MatchString(fn.Name())) &&
		slices.ContainsFunc(com.Args, func(a ssa.Value) bool { return isContext(a.Type()) }), false
}

// handsLasting reports whether all callers of the function hand a function that lasts.
func (p *Package) handsLasting(fn *ssa.Function, param *ssa.Parameter) bool {
	i := slices.Index(fn.Params, param)
	calls := p.startedBy(fn)
	if i < 0 || len(calls) == 0 {
		return false
	}
	for _, c := range calls {
		if i >= len(c.Args) { // of a method value, which holds its receiver
			return false
		}
		body := FuncOf(c.Args[i])
		if body == nil || len(body.Blocks) == 0 || !blocks(body, 3) {
			return false
		}
	}
	return true
}

// startedBy are the calls of a function in the package, those by go among them.
func (p *Package) startedBy(fn *ssa.Function) (calls []*ssa.CallCommon) {
	for _, up := range p.Funcs {
		for c := range InstrsOf[ssa.CallInstruction](up) {
			if eval.Static(c.Common()) == fn {
				calls = append(calls, c.Common())
			}
		}
	}
	return calls
}

// FuncOf is the function that a value is, or nil.
func FuncOf(v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.Function:
		return v
	case *ssa.MakeClosure:
		fn := v.Fn.(*ssa.Function)
		if obj, ok := fn.Object().(*types.Func); ok && len(fn.Blocks) < 2 {
			if m := fn.Prog.FuncValue(obj); m != nil {
				return m
			}
		}
		return fn
	case *ssa.ChangeType:
		return FuncOf(v.X)
	case *ssa.MakeInterface:
		return FuncOf(v.X)
	}
	return nil
}

// blocks reports whether a function, or what it calls, stays in a loop that waits for
// what others send.
func blocks(fn *ssa.Function, depth int) bool {
	_, innermost := eval.Loops(fn)
	for _, b := range fn.Blocks {
		inLoop := innermost[b] != nil
		for _, in := range b.Instrs {
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
				if inLoop && receiveWord.MatchString(eval.CalleeName(in.Common())) {
					return true
				}
				if g := eval.Static(in.Common()); depth > 0 && g != nil && len(g.Blocks) > 0 && g != fn && blocks(g, depth-1) {
					return true
				}
			}
		}
	}
	return false
}
