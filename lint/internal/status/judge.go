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
	res := fn.Signature.Results()
	last := res.At(res.Len() - 1).Type()
	boolean := res.Len() == 1 && types.Identical(last.Underlying(), types.Typ[types.Bool])
	if !boolean && !dataflow.IsError(last) || !j.touches(fn, 0) {
		return 0, 0
	}
	for i, r := range statuses {
		w := j.world(sc, r.Number, false)
		if boolean {
			if w.result(fn, -1, false) == yes && w.used {
				yesMask |= 1 << i
			}
			continue
		}
		if w.result(fn, res.Len()-1, true) == no && w.used {
			fails |= 1 << i
		}
	}
	return fails, yesMask
}

// Yes returns the responses for which the predicate fn certainly returns true,
// as a mask; none when it does not look at a status.
// A caller must look at bit 0 first: what says yes to a success is no such
// predicate.
func (j *Judge) Yes(fn *ssa.Function, grpc bool) uint16 {
	sc := j.known.Scope(fn)
	res := fn.Signature.Results()
	if res.Len() == 0 || !types.Identical(res.At(0).Type().Underlying(), types.Typ[types.Bool]) || !j.touches(fn, 0) {
		return 0
	}
	var mask uint16
	for i, r := range Responses(grpc) {
		w := j.world(sc, r.Number, grpc)
		if w.result(fn, -1, false) == yes && w.used {
			mask |= 1 << i
		}
	}
	return mask
}

// YesToCertificate reports whether the predicate fn certainly returns true for
// an error of crypto/x509 that it asks for.
// A predicate that returns true for any error at all does not count: it has not
// asked.
func (j *Judge) YesToCertificate(fn *ssa.Function) bool {
	res := fn.Signature.Results()
	if res.Len() == 0 || !types.Identical(res.At(0).Type().Underlying(), types.Typ[types.Bool]) {
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
		b, ok := p.Type().Underlying().(*types.Basic)
		found = found || ok && i < 6 && b.Info()&types.IsInteger != 0 && statusName.MatchString(p.Name())
	}
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		if v, ok := in.(ssa.Value); ok && (IsStatus(v) || isCode(v)) {
			found = true
		}
		if c, ok := in.(*ssa.Call); ok && !found && depth < 3 {
			if g := dataflow.Static(c.Common()); g != nil && len(g.Blocks) > 0 && j.known.Own(g) {
				found = j.touches(g, depth+1)
			} else if sum := j.known.Of(c.Common()); sum != nil && (sum.Fails|sum.Yes) != 0 {
				found = true
			}
		}
	}
	j.memo[fn] = found
	return found
}
