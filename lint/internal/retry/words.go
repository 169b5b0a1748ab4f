package retry

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Names are evidence, not proof: they raise or lower a score, and decide only where
// code cannot. Comments are not read: they go out of date.
var (
	// retryWord marks code that says that it retries. Entries are no tries, and what is
	// retrieved is not retried.
	retryWord = regexp.MustCompile(`(?i:retry|retri(es|ed|er|able)|attempt|backoff|reconnect|redial|resend|reupload|redo|try.?again|(max|num|of)_?tries)|(^|[^A-Za-z])tries|(^|[^A-Z])TRIES|Tries`)
	// failureWait marks what holds a wait for after a failure: errorDelay,
	// SleepOnFailure.
	failureWait = regexp.MustCompile(`(?i)(delay|wait|sleep|pause|interval)(time|duration|_)*(on|when|after|upon)_?(err|fail)|(error|failure|failed)_?(delay|wait|sleep|pause|interval)`)
	// awaitWord marks functions that wait for a state, take a lock or keep something
	// going, rather than retry a call.
	awaitWord = regexp.MustCompile(`(?i)^(wait|poll|await|ensure.*ready|monitor|watch|reconcile|elect|campaign|heartbeat|keepalive|supervis|probe|expect|eventually|check.*(ready|health|up|alive))|wait(for|until|ing)|until|ready|poll|listen|leader|(^|[^bc])lock|watch|heartbeat|keep.?alive|daemon|supervisor|health`)
	// pollWord marks loops that wait for a state of something else.
	pollWord = regexp.MustCompile(`(?i)poll([^aeiouy]|ing|$|ed)|pending|not.?ready|in.?progress|device.?code|no.?progress|would.?block|heartbeat|^(Err|E)(Exist|EXIST|AGAIN|WOULDBLOCK|INTR)$`)
)

// SaysRetry reports whether a name or a text speaks of trying again.
func SaysRetry(name string) bool { return retryWord.MatchString(name) }

// words reads the names in and around a retry. Those of the functions around a
// literal count too.
func (r *Retry) words() {
	if !ablate.On("words") {
		return
	}
	for fn := r.Fn; fn != nil; fn = fn.Parent() {
		r.Spoken = r.Spoken || SaysRetry(fn.Name())
		r.Waiting = r.Waiting || awaitWord.MatchString(fn.Name())
	}
	// A package or a type that is named for it holds the helpers of a retry.
	if r.Callback && r.Fn.Pkg != nil {
		r.Spoken = r.Spoken || SaysRetry(r.Fn.Pkg.Pkg.Name())
	}
	if recv := r.Fn.Signature.Recv(); recv != nil {
		r.Spoken = r.Spoken || SaysRetry(TypeName(recv.Type()))
	}
	for _, c := range r.Ops {
		r.Waiting = r.Waiting || awaitWord.MatchString(eval.CalleeName(c.Common()))
	}
	r.Waiting = r.Waiting || pollWord.MatchString(r.Delay.Name)
	node := r.Node
	if node == nil {
		node = r.Fn.Syntax()
	}
	if node == nil {
		return
	}
	for n := range ast.Preorder(node) {
		switch n := n.(type) {
		case *ast.Ident:
			r.Spoken = r.Spoken || SaysRetry(n.Name) || failureWait.MatchString(n.Name)
			r.Waiting = r.Waiting || pollWord.MatchString(n.Name)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				r.Spoken = r.Spoken || SaysRetry(n.Value)
				r.Waiting = r.Waiting || pollWord.MatchString(n.Value)
			}
		}
	}
}

// describe fills in what follows from the operations, the waits and the names.
func (p *Package) describe(r *Retry) {
	r.Boundary = Local // when each of them stays
	for _, c := range r.Ops {
		if b := p.BoundaryOf(c.Common()); b == Remote || b == Unknown && r.Boundary == Local {
			r.Boundary = b
		}
		if !c.Common().IsInvoke() && handed(c.Common().Value) {
			r.Callback = true
		}
	}
	r.Node = loopNode(r)
	if r.Node != nil {
		r.Pos = r.Node.Pos()
	} else if c := selfCall(r.Fn); r.Loop == nil && c != nil {
		r.Pos = c.Pos()
	} else {
		r.Pos = r.Ops[0].Pos()
	}
	r.Bound = p.bound(r)
	r.words()
	r.Reaches = p.reaches(r)
}

// handed reports whether a function value comes from a caller.
func handed(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.Parameter, *ssa.FreeVar:
		return true
	case *ssa.UnOp:
		return handed(v.X)
	case *ssa.FieldAddr:
		return handed(v.X)
	}
	return false
}

func selfCall(fn *ssa.Function) *ssa.Call {
	for c := range Calls(fn) {
		if eval.Static(c.Common()) == fn {
			return c
		}
	}
	return nil
}

// loopNode finds the statement of the loop: the smallest for or range statement that
// encloses its operations and waits; nil for goto loops. SSA keeps no link from a
// loop to its statement, so that positions have to do.
func loopNode(r *Retry) ast.Node {
	syntax := r.Fn.Syntax()
	if syntax == nil || r.Loop == nil {
		return nil
	}
	var inside []token.Pos
	for _, c := range r.Ops {
		inside = append(inside, c.Pos())
	}
	for b := range r.Loop.Blocks {
		if b == r.Loop.Header {
			continue // which holds what comes before a condition, too
		}
		for _, in := range b.Instrs {
			if _, isPhi := in.(*ssa.Phi); !isPhi && in.Pos().IsValid() {
				inside = append(inside, in.Pos())
				break
			}
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

// TypeName is the name of t, or of what it points to.
func TypeName(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// Describe names a call for people: "http.Client.Do", "connect", "a function value".
// Findings and their fingerprints hold these names.
func Describe(c *ssa.CallCommon) string {
	f := eval.Callee(c)
	if f == nil {
		if n := eval.ValueName(c.Value); n != "" {
			return n
		}
		return "a function value"
	}
	if recv := f.Signature().Recv(); recv != nil {
		t := recv.Type()
		if p, ok := types.Unalias(t).(*types.Pointer); ok {
			t = p.Elem()
		}
		n, ok := types.Unalias(t).(*types.Named)
		switch {
		case !ok: // a method of an interface without a name
			return f.Name()
		case n.Obj().Pkg() == nil: // of error
			return n.Obj().Name() + "." + f.Name()
		}
		return n.Obj().Pkg().Name() + "." + n.Obj().Name() + "." + f.Name()
	}
	if f.Pkg() != nil {
		return f.Pkg().Name() + "." + f.Name()
	}
	return f.Name()
}

// reachWord marks operations that reach out for another machine, by their names.
var reachWord = regexp.MustCompile(`(?i)connect|dial|send|publish|post|fetch|request|query|push|upload|download|^exec|ping|subscribe|rpc|^call|commit|register|login|handshake`)

// reaches reports whether an operation reaches out by its name, or is a method of what
// holds a connection or a client; of what is handed to a retry, whether such calls are in it.
func (p *Package) reaches(r *Retry) bool {
	reach := func(c *ssa.Call) bool {
		recv := c.Common().Signature().Recv()
		return reachWord.MatchString(eval.CalleeName(c.Common())) || recv != nil && holdsClient(recv.Type(), 0)
	}
	if slices.ContainsFunc(r.Ops, reach) {
		return true
	}
	for _, c := range p.callers[Outermost(r.Fn)] {
		for _, a := range c.Common().Args {
			if f := FuncOf(a); r.Callback && f != nil && slices.ContainsFunc(slices.Collect(Calls(f)), reach) {
				return true
			}
		}
	}
	return false
}
