// Package status says what code does after a response of a given HTTP status,
// or an error of a given gRPC code: it runs the code under the assumption that
// every response has that status, and believes only what is certain.
package status

import (
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Judge says what the functions of a package do with a status. It is made once
// for a package, remembers what it has found, and is not safe for concurrent
// use.
// It runs the code in its head, once for each response, under the assumption
// that the server has sent it.
type Judge struct {
	known *fact.Table
	memo  map[*ssa.Function]bool // looks at a status
}

// New returns the judge of the functions in a table.
func New(known *fact.Table) *Judge {
	return &Judge{known: known, memo: map[*ssa.Function]bool{}}
}

// Outcome evaluates a function for each HTTP status, and returns two masks: for
// which statuses it certainly returns an error, and for which true. They become
// facts, by which callers in other packages judge their own branches.
// Bit i of a mask stands for response i of Responses(false). A function that
// never looks at the status yields none.
func (j *Judge) Outcome(sc *fact.Scope) (fails, yesMask uint16) {
	fn := sc.Fn
	last := fn.Signature.Results().Len() - 1
	switch {
	case last == 0 && answersBool(fn):
		return 0, j.Yes(fn, false)
	case dataflow.IsError(fn.Signature.Results().At(last).Type()) && j.touches(fn, 0):
		return j.mask(sc, false, func(w *world) bool { return w.result(fn, last, true) == no }), 0
	}
	return 0, 0
}

// Yes returns the responses for which the predicate fn certainly returns true,
// as a mask; none when it does not look at a status.
// A caller must look at bit 0 first: what says yes to a success is no such
// predicate.
func (j *Judge) Yes(fn *ssa.Function, grpc bool) uint16 {
	if !answersBool(fn) || !j.touches(fn, 0) {
		return 0
	}
	return j.mask(j.known.Scope(fn), grpc, func(w *world) bool { return w.result(fn, -1, false) == yes })
}

// mask runs a function once for each response, and returns those for which the
// outcome is certain and depends on the response.
func (j *Judge) mask(sc *fact.Scope, grpc bool, certain func(*world) bool) (mask uint16) {
	for i, r := range Responses(grpc) {
		if w := j.world(sc, r.Number, grpc); certain(w) && w.used {
			mask |= 1 << i
		}
	}
	return mask
}

// answersBool reports whether the first result of a function is a bool.
func answersBool(fn *ssa.Function) bool {
	res := fn.Signature.Results()
	return res.Len() > 0 && types.Identical(res.At(0).Type().Underlying(), types.Typ[types.Bool])
}

// YesToCertificate reports whether the predicate fn certainly returns true for
// an error of crypto/x509 that it asks for.
// A predicate that returns true for any error at all does not count: it has not
// asked.
func (j *Judge) YesToCertificate(fn *ssa.Function) bool {
	if !answersBool(fn) {
		return false
	}
	w := j.world(j.known.Scope(fn), 0, false)
	w.cert = true
	return w.result(fn, -1, false) == yes && w.used
}

// Retried returns the responses after which l certainly begins another turn, as a
// mask. Zero means that it does not look at statuses,
// or cannot be judged.
// "Certainly" is what makes a finding block a merge: every open branch is
// followed both ways and counts against none.
func (j *Judge) Retried(sc *fact.Scope, l *dataflow.Loop, grpc bool) (mask uint16) {
	for i, r := range Responses(grpc) {
		w := j.world(sc, r.Number, grpc)
		again := false
		w.turn(l, func() { again = true })
		if i == 0 && again {
			return 0 // goes on after a success: no retry on the status
		}
		if again && w.used {
			mask |= 1 << i
		}
	}
	return mask
}

// Undecided returns the branches that cannot be judged between one of the
// responses in mask and the next turn of l: they look at something other than
// the status, such as the body, and may end the loop by it.
// They cost a finding its high confidence.
func (j *Judge) Undecided(sc *fact.Scope, l *dataflow.Loop, mask uint16, grpc bool) (branches []*ssa.If) {
	for i, r := range Responses(grpc) {
		if mask&(1<<i) == 0 {
			continue
		}
		w := j.world(sc, r.Number, grpc)
		for b := range w.turn(l, func() {}) {
			if br := dataflow.IfOf(b); br != nil && w.condAt(br) == maybe {
				branches = append(branches, br)
			}
		}
	}
	return branches
}

// statusName marks integer parameters that hold a status.
var statusName = regexp.MustCompile(`(?i)status|code`)

// touches reports whether fn, or a function of this package that it calls, looks
// at a status code. To run a function once for each response is dear, so that
// functions which cannot depend on one are left out.
func (j *Judge) touches(fn *ssa.Function, depth int) bool {
	if t, ok := j.memo[fn]; ok {
		return t
	}
	// A function that leads back to itself adds nothing to what it looks at.
	j.memo[fn] = false
	found := false
	for i, p := range fn.Params {
		found = found || i < 6 && dataflow.IsInteger(p.Type()) && statusName.MatchString(p.Name())
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		if v, ok := in.(ssa.Value); ok && (IsStatus(v) || isCode(v)) {
			found = true
		}
		if c, ok := in.(*ssa.Call); ok && !found && depth < 3 {
			if g := j.known.Body(c.Common()); g != nil {
				found = j.touches(g, depth+1)
			} else if sum := j.known.Of(c.Common()); sum != nil && (sum.Fails|sum.Yes) != 0 {
				found = true
			}
		}
	}
	j.memo[fn] = found
	return found
}
