package retryloop

import "golang.org/x/tools/go/ssa"

// Statuses are the answers that predicates and loops are tried with: a
// success, the six that must not be retried, and two that may be.
var Statuses = [9]int64{200, 400, 401, 403, 404, 409, 422, 429, 503}

// Codes are the same for gRPC: OK, the five of R-4, and UNAVAILABLE.
var Codes = [7]int64{0, 3, 5, 7, 12, 16, 14}

// Judge says what the functions of a package do with a status.
type Judge struct {
	known   *Table
	touches map[*ssa.Function]bool // looks at a status
}

// newJudge returns the judge of the functions in a table.
func newJudge(known *Table) *Judge {
	return &Judge{known: known, touches: map[*ssa.Function]bool{}}
}

// world is one assumption under which code is evaluated: every response has
// this status (or every gRPC error this code), and nothing else fails.
type world struct {
	status int64
	grpc   bool
	cert   bool // instead, every error is the one of crypto/x509 that is asked for
	judge  *Judge
	scope  *Scope
	depth  int
	used   bool          // some branch depended on the assumption
	params map[int]int64 // parameters of a helper that hold the status
	steps  *int          // left before the evaluation gives up; shared with helpers
	nest   int           // evaluations under way
}

const evalSteps, evalNest = 4000, 40

// enough counts a step of the evaluation and reports whether to give up.
func (w *world) enough() bool {
	*w.steps--
	return *w.steps < 0 || w.nest > evalNest
}

type truth int

const (
	maybe truth = iota
	yes
	no
)

func (t truth) not() truth {
	switch t {
	case yes:
		return no
	case no:
		return yes
	}
	return maybe
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// enter makes the world of a helper; nil when it cannot see the status.
func (w *world) enter(fn *ssa.Function, args []ssa.Value) *world {
	sub := &world{status: w.status, grpc: w.grpc, judge: w.judge, scope: w.judge.known.scope(fn), depth: w.depth + 1, params: map[int]int64{}, steps: w.steps, nest: w.nest + 1}
	for i, a := range args {
		if n, ok := w.statusValue(a); ok && i < len(fn.Params) {
			sub.params[i] = n
		}
	}
	return sub
}
