package retryloop

import (
	"go/ast"
	"go/token"
	"regexp"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

var (
	// retryWord marks code that says that it retries, beside the word itself. Entries
	// are no tries.
	retryWord = regexp.MustCompile(`(?i:attempt|backoff|reconnect|redial|try.?again|(max|num|of)_?tries)|(^|[^A-Za-z])tries|(^|[^A-Z])TRIES|Tries`)
	// failureWait marks what holds a wait for after a failure: errorDelay,
	// SleepOnFailure. What waits so tries again. An error of waiting, such as
	// waitErr, has the words in another order.
	failureWait = regexp.MustCompile(`(?i)(delay|wait|sleep|pause|interval)(time|duration|_)*(on|when|after|upon)_?(err|fail)|(error|failure|failed)_?(delay|wait|sleep|pause|interval)`)
	// awaitWord marks functions that wait for a state, take a lock or keep
	// something going, rather than retry a call.
	awaitWord = regexp.MustCompile(`(?i)^(wait|poll|await|ensure.*ready|monitor|watch|reconcile|elect|campaign|heartbeat|keepalive|supervis|probe|expect|eventually|check.*(ready|health|up|alive))|wait(for|until|ing)|until|ready|poll|listen|leader|(^|[^bc])lock|watch|heartbeat|keep.?alive|daemon|supervisor|health`)
)

// saysRetry reports whether a name or a text speaks of trying again.
func saysRetry(name string) bool { return dataflow.SaysRetry(name) || retryWord.MatchString(name) }

// words reads the names in and around a region. They are evidence, not proof:
// they raise or lower a confidence, and decide only where code cannot, as in a
// loop without a wait. Those of the functions around a literal count too.
// Comments are not read: they go out of date.
func (r *Region) words() {
	for fn := r.Fn; fn != nil; fn = fn.Parent() {
		r.Spoken = r.Spoken || saysRetry(fn.Name())
		r.Waiting = r.Waiting || awaitWord.MatchString(fn.Name())
	}
	// A package or a type that is named for it holds the helpers of a retry.
	if r.Callback && r.Fn.Pkg != nil {
		r.Spoken = r.Spoken || saysRetry(r.Fn.Pkg.Pkg.Name())
		if recv := r.Fn.Signature.Recv(); recv != nil {
			r.Spoken = r.Spoken || saysRetry(dataflow.TypeName(recv.Type()))
		}
	}
	for _, c := range r.Ops {
		r.Waiting = r.Waiting || awaitWord.MatchString(dataflow.CalleeName(c.Common()))
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
			r.Spoken = r.Spoken || saysRetry(n.Name) || failureWait.MatchString(n.Name)
			r.Waiting = r.Waiting || pollWord.MatchString(n.Name)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				r.Spoken = r.Spoken || saysRetry(n.Value)
				r.Waiting = r.Waiting || pollWord.MatchString(n.Value)
			}
		}
	}
}

// pollWord marks loops that wait for a state of something else.
// The code of such a loop is that of a retry; only the words tell them apart.
var pollWord = regexp.MustCompile(`(?i)poll([^aeiouy]|ing|$|ed)|pending|not.?ready|in.?progress|device.?code|no.?progress|would.?block|heartbeat|^(Err|E)(Exist|EXIST|AGAIN|WOULDBLOCK|INTR)$`)

// othersWord marks errors that say that another one holds what is asked for, or
// has changed it meanwhile.
var othersWord = regexp.MustCompile(`(?i)(^|[^bc])lock|exist|conflict|taken|held|(not|un).?(obtained|acquired)|in.?use|stale|modified|version|wouldblock|^EAGAIN$`)

// loopNode finds the statement of the region's loop: the smallest for or range
// statement that encloses all its operations and waits; nil for goto loops. SSA
// keeps no link from a loop to its statement, so that positions have to do.
// A finding is reported at the keyword of that statement.
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
