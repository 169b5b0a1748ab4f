package status

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// world is one assumption under which code is evaluated: every response has
// this status (or every gRPC error this code), and nothing else fails.
//
// Code is evaluated for the one question whether a branch is certainly taken. A
// condition that depends on anything but the assumption is maybe, and maybe is
// kept apart from no all the way up: the rules report only what is certain.
type world struct {
	status int64
	grpc   bool
	cert   bool // instead, every error is the one of crypto/x509 that is asked for
	judge  *Judge
	scope  *fact.Scope
	depth  int
	used   bool          // some branch depended on the assumption
	params map[int]int64 // parameters of a helper that hold the status
	steps  *int          // left before the evaluation gives up; shared with helpers
	nest   int           // evaluations under way
}

// world assumes a status for a function, its parameters included: an integer
// parameter of a telling name holds the status, and one of codes.Code the code.
func (j *Judge) world(sc *fact.Scope, status int64, grpc bool) *world {
	w := &world{status: status, grpc: grpc, judge: j, scope: sc, params: map[int]int64{}, steps: new(int)}
	*w.steps = evalSteps
	for i, p := range sc.Fn.Params {
		isCodes := dataflow.IsNamed(p.Type(), "google.golang.org/grpc/codes", "Code")
		if dataflow.IsInteger(p.Type()) && grpc == isCodes && (isCodes || statusName.MatchString(p.Name())) {
			w.params[i] = status
		}
	}
	return w
}

// evalSteps bounds the values that one evaluation looks at, helpers included,
// and evalNest how deeply they may lie in each other. Generated code has
// functions with thousands of branches.
const evalSteps, evalNest = 4000, 40

// enough counts a step of the evaluation and reports whether to give up.
// The limits keep a function with many merged branches from taking minutes.
func (w *world) enough() bool {
	*w.steps--
	return *w.steps < 0 || w.nest > evalNest
}

// truth is what is known of a condition. The zero value is maybe, so what is not
// recognized is not certain.
type truth int

const (
	maybe truth = iota
	yes
	no
)

// not negates what is certain, and leaves the rest open.
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

// agreement gathers the values that something may have: it is certain only when
// all are the same. The zero value holds none, and is not certain.
type agreement struct {
	truth truth
	some  bool
}

// add notes one value more, and reports whether all are the same so far.
func (a *agreement) add(t truth) bool {
	same := !a.some || a.truth == t
	a.truth, a.some = t, true
	return same
}

// enter makes the world of a helper, whose parameters hold the status where its
// arguments do.
func (w *world) enter(fn *ssa.Function, args []ssa.Value) *world {
	sub := &world{status: w.status, grpc: w.grpc, judge: w.judge, scope: w.judge.known.Scope(fn), depth: w.depth + 1, params: map[int]int64{}, steps: w.steps, nest: w.nest + 1}
	for i, a := range args {
		if n, ok := w.statusValue(a); ok && i < len(fn.Params) {
			sub.params[i] = n
		}
	}
	return sub
}
