package retryloop

import (
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"
)

var statusName = regexp.MustCompile(`(?i)status|code`)

// statusOutcome evaluates the function for each status: does it certainly
// return an error, or true?
func (j *Judge) statusOutcome(sc *Scope) (fails, yesMask uint16) {
	fn := sc.fn
	res := fn.Signature.Results()
	last := res.At(res.Len() - 1).Type()
	boolean := res.Len() == 1 && types.Identical(last.Underlying(), types.Typ[types.Bool])
	if !boolean && !isError(last) || !j.touchesStatus(fn, 0) {
		return 0, 0
	}
	for i, s := range Statuses {
		w := j.world(sc, s, false)
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

// world assumes a status for the function of f, its parameters included.
func (j *Judge) world(sc *Scope, status int64, grpc bool) *world {
	w := &world{status: status, grpc: grpc, judge: j, scope: sc, params: map[int]int64{}, steps: new(int)}
	*w.steps = evalSteps
	for i, p := range sc.fn.Params {
		basic, ok := p.Type().Underlying().(*types.Basic)
		isCodes := IsNamed(p.Type(), "google.golang.org/grpc/codes", "Code")
		if ok && basic.Info()&types.IsInteger != 0 && grpc == isCodes && (isCodes || statusName.MatchString(p.Name())) {
			w.params[i] = status
		}
	}
	return w
}

// touchesStatus reports whether fn, or a function of this package that it
// calls, looks at a status code.
func (j *Judge) touchesStatus(fn *ssa.Function, depth int) bool {
	if t, ok := j.touches[fn]; ok {
		return t
	}
	j.touches[fn] = false
	found := false
	for i, p := range fn.Params {
		b, ok := p.Type().Underlying().(*types.Basic)
		found = found || ok && i < 6 && b.Info()&types.IsInteger != 0 && statusName.MatchString(p.Name())
	}
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			if v, ok := in.(ssa.Value); ok && (IsStatus(v) || isCode(v)) {
				found = true
			}
			if c, ok := in.(*ssa.Call); ok && !found && depth < 3 {
				if g := static(c.Common()); g != nil && len(g.Blocks) > 0 && j.known.own(g) {
					found = j.touchesStatus(g, depth+1)
				} else if sum := j.known.of(c.Common()); sum != nil && (sum.Fails|sum.Yes) != 0 {
					found = true
				}
			}
		}
	}
	j.touches[fn] = found
	return found
}

// RetriedStatuses returns the statuses of Statuses (or Codes) after which the
// region certainly begins another attempt, as a mask. Zero means that the
// region does not look at statuses, or cannot be judged.
func (r *Region) RetriedStatuses(grpc bool) uint16 {
	if r.Loop == nil {
		return 0
	}
	return r.f.pkg.judge.retried(r.f.Scope, r.Loop, grpc)
}

// answers lists Statuses or Codes.
func answers(grpc bool) []int64 {
	if grpc {
		return Codes[:]
	}
	return Statuses[:]
}

// retried returns the statuses of Statuses (or Codes) after which l certainly
// begins another turn, as a mask. Zero means that it does not look at statuses,
// or cannot be judged.
func (j *Judge) retried(sc *Scope, l *Loop, grpc bool) (mask uint16) {
	for i, s := range answers(grpc) {
		w := j.world(sc, s, grpc)
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

// undecided returns the branches that nobody can judge between one of the
// statuses in mask and the next turn of l.
func (j *Judge) undecided(sc *Scope, l *Loop, mask uint16, grpc bool) (branches []*ssa.If) {
	for i, s := range answers(grpc) {
		if mask&(1<<i) == 0 {
			continue
		}
		w := j.world(sc, s, grpc)
		for b := range w.turn(l, func() {}) {
			if br := ifOf(b); br != nil && w.condAt(br) == maybe {
				branches = append(branches, br)
			}
		}
	}
	return branches
}

// turn returns the blocks of one turn of l that can run under the assumption;
// it calls again when another turn begins.
func (w *world) turn(l *Loop, again func()) map[*ssa.BasicBlock]bool {
	return w.reach(l.Header, func(b *ssa.BasicBlock) bool {
		if b == l.Header {
			again()
		}
		return b == l.Header || !l.Blocks[b]
	})
}

// OnlyRefused reports whether the region tries again only what a server refused
// with 429, and so did not carry out: repeating such a write does no harm.
func (r *Region) OnlyRefused() bool {
	if r.Loop == nil || slices.ContainsFunc(r.Tests, func(t *Test) bool { return !t.Status }) {
		return false
	}
	tooMany := slices.Index(Statuses[:], 429)
	return r.RetriedStatuses(false) == 1<<tooMany
}

// PredicateYes returns for which statuses (or codes) fn certainly returns true.
func (r *Result) PredicateYes(fn *ssa.Function, grpc bool) uint16 {
	return r.pkg.judge.predicateYes(fn, grpc)
}

func (j *Judge) predicateYes(fn *ssa.Function, grpc bool) uint16 {
	sc := j.known.scope(fn)
	res := fn.Signature.Results()
	if res.Len() == 0 || !types.Identical(res.At(0).Type().Underlying(), types.Typ[types.Bool]) || !j.touchesStatus(fn, 0) {
		return 0
	}
	var mask uint16
	for i, s := range answers(grpc) {
		w := j.world(sc, s, grpc)
		if w.result(fn, -1, false) == yes && w.used {
			mask |= 1 << i
		}
	}
	return mask
}
