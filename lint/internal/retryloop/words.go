package retryloop

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"
)

var (
	retryWord = regexp.MustCompile(`(?i)retr(y|ie)|attempt|tries|backoff|reconnect|redial|try.?again`)
	// awaitWord marks functions that wait for a state, take a lock or keep
	// something going, rather than retry a call.
	awaitWord = regexp.MustCompile(`(?i)^(wait|poll|await|ensure.*ready|monitor|watch|reconcile|elect|campaign|heartbeat|keepalive|supervis|probe|expect|eventually|check.*(ready|health|up|alive))|wait(for|until|ing)|until|ready|poll|listen|leader|(^|[^b])lock|watch|heartbeat|keep.?alive|daemon|supervisor|health`)
)

// words reads the names in and around a region.
func (r *Region) words() {
	for fn := r.Fn; fn != nil; fn = fn.Parent() {
		name := fn.Name()
		if retryWord.MatchString(name) && !r.Spoken {
			r.Spoken = true
		}
		if awaitWord.MatchString(name) {
			r.Waiting = true
		}
	}
	for _, c := range r.Ops {
		if n := CalleeName(c.Common()); awaitWord.MatchString(n) {
			r.Waiting = true
		}
	}
	r.Waiting = r.Waiting || pollWord.MatchString(r.Delay.Name)
	node := r.Node
	if node == nil {
		node = r.Fn.Syntax()
	}
	if node == nil {
		return
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			r.Spoken = r.Spoken || retryWord.MatchString(n.Name)
			r.Waiting = r.Waiting || pollWord.MatchString(n.Name)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				r.Spoken = r.Spoken || retryWord.MatchString(n.Value)
				r.Waiting = r.Waiting || pollWord.MatchString(n.Value)
			}
		}
		return true
	})
}

// pollWord marks loops that wait for a state of something else.
var pollWord = regexp.MustCompile(`(?i)poll([^aeiouy]|ing|$|ed)|pending|not.?ready|in.?progress|no.?progress|would.?block|heartbeat|^(Err|E)(Exist|EXIST|AGAIN|WOULDBLOCK|INTR)$`)

// loopNode finds the statement of the region's loop: the smallest for or range
// statement that encloses all its operations and waits; nil for goto loops.
func loopNode(r *Region) ast.Node {
	syntax := r.Fn.Syntax()
	if syntax == nil {
		return nil
	}
	var inside []token.Pos
	for _, c := range r.Ops {
		inside = append(inside, c.Pos())
	}
	for _, t := range r.Tests {
		if p := t.If.Cond.Pos(); p.IsValid() {
			inside = append(inside, p)
		}
	}
	for _, w := range r.Waits {
		if p := w.Instr.Pos(); p.IsValid() {
			inside = append(inside, p)
		}
	}
	var best ast.Node
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return n == syntax
		case *ast.ForStmt, *ast.RangeStmt:
			for _, p := range inside {
				if p < n.Pos() || p >= n.End() {
					return true
				}
			}
			best = n
		}
		return true
	})
	return best
}

// immediate reports whether a region without any wait is worth a word: one that
// says that it retries, goes to a boundary, and has no backoff hidden in a
// callee.
func (r *Region) immediate() bool {
	if !r.Pure || r.Loop == nil || !r.Spoken || r.Waiting {
		return false
	}
	if r.Bound.Known && r.Bound.Limit <= 2 || r.candidates() {
		return false
	}
	ops := map[*ssa.Call]bool{}
	for _, c := range r.Ops {
		ops[c] = true
	}
	for b := range r.Loop.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Call:
				if !ops[in] && hiddenPause.MatchString(CalleeName(in.Common())) {
					return false
				}
				if s := r.f.known.of(in.Common()); s != nil && (s.Wait != nil || s.Retries) || blocks(in.Common()) {
					return false
				}
				if conflictWord.MatchString(CalleeName(in.Common())) {
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
	}
	return true
}

// blocks reports whether c calls a function that waits on channels, and so
// paces its caller.
func blocks(c *ssa.CallCommon) bool {
	fn := static(c)
	if fn == nil {
		return false
	}
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
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
	}
	return false
}

var (
	hiddenPause  = regexp.MustCompile(`(?i)retry|backoff|next|ongoing|continue|allow|wait|sleep|delay|pause|limit|refresh|reconnect|reset|renew|resolve|rotate|rand|attempt`)
	conflictWord = regexp.MustCompile(`(?i)conflict|exist|precondition|collision|modified|stale|CompareAnd|Is(NotFound|Gone)|Version`)
)

// candidates reports whether each attempt goes to another receiver or with
// other arguments that the loop itself obtains: failover, not retry.
func (r *Region) candidates() bool {
	fromLoop := func(v ssa.Value) bool {
		p, ok := v.(*ssa.Phi)
		if !ok || !r.Loop.contains(p) {
			c, isCall := originOf(v).(*ssa.Call)
			return isCall && r.Loop.contains(c) && !isRequest(v.Type())
		}
		_, basic := p.Type().Underlying().(*types.Basic)
		return !basic && !isError(p.Type())
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

func originOf(v ssa.Value) ssa.Value {
	if e, ok := v.(*ssa.Extract); ok {
		return e.Tuple
	}
	return v
}
