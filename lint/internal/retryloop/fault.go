package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Fault is a repetition that may send a write twice without a key.
type Fault struct {
	Send fact.Send
	// Caller is the call that chooses the write, when rep leaves that to its
	// callers and one is seen to; Open faults are left to callers that are not seen.
	Caller *Caller
	Open   bool
	// Sure faults have nothing that speaks against them.
	Sure bool
	// Guess faults are open ones by a type of one's own, of which nothing says that
	// it is ever used for a write: none of its requests has a body.
	Guess  bool
	beyond []Chooser
}

// Fault says what is wrong with a repetition, or returns nil. A write that it
// sends itself comes first, then one that a caller of the package chooses. What is
// left to other packages may be none but safe requests: that is sure only where
// the repetition takes the place of a client.
func (r *Result) Fault(rep *Repeat) *Fault {
	if rep.ByMethod == Chosen {
		return nil
	}
	if w := FirstWrite(rep.Sends); w != nil {
		return &Fault{Send: *w, Sure: rep.plain(*w) && rep.reached(*w)}
	}
	for _, snd := range rep.Sends {
		if !snd.Open() || snd.Keyed {
			continue
		}
		callers, beyond := r.Callers(rep, snd)
		mayBeTold := rep.Shape(snd) == Standard && r.identifies(rep)
		if c := firstCaller(callers); c != nil {
			return &Fault{Send: snd, Caller: c, Sure: rep.plain(c.Send) && !mayBeTold, beyond: beyond}
		}
		if len(beyond) > 0 {
			plain := rep.plain(snd)
			return &Fault{
				Send: snd, Open: true, beyond: beyond,
				Sure:  rep.StandsIn(snd, beyond) && plain && !mayBeTold,
				Guess: rep.Shape(snd) == OwnType && !(snd.Body && plain),
			}
		}
	}
	return nil
}

// tell marks what callers in other packages learn of the repetitions that are
// surely faults of this one, so that they are not reported once more.
func (r *Result) tell() {
	for _, rep := range r.Repeats() {
		f := r.Fault(rep)
		if f == nil || !f.Sure {
			continue
		}
		for _, c := range f.beyond {
			sum := r.Known.Local(c.Fn)
			for i, snd := range sum.Retried {
				sum.Retried[i].Told = snd.Told || c.Param < 0 || snd.Param == c.Param
			}
		}
	}
}

// FirstWrite returns the first write without a key, or nil; rather one whose
// names do not say that it only reads.
func FirstWrite(sends []fact.Send) (first *fact.Send) {
	for i, s := range sends {
		if !s.Keyed && s.Writes() && (first == nil || first.Reads && !s.Reads) {
			first = &sends[i]
		}
	}
	return first
}

// firstCaller returns the first caller that chooses a write, rather one whose
// names do not say that it only reads.
func firstCaller(callers []Caller) (first *Caller) {
	for i, c := range callers {
		if c.Send.Writes() && (first == nil || first.Send.Reads && !c.Send.Reads) {
			first = &callers[i]
		}
	}
	return first
}

// plain reports whether nothing speaks against a finding: names of reading or of
// waiting, a policy that may look at the method, or a loop that sends the same
// after a success, too, only later: what is announced so may be sent twice.
func (rep *Repeat) plain(s fact.Send) bool {
	return !s.Reads && !rep.ReadOnly() && rep.ByMethod == Blind && (rep.Region == nil || rep.Region.Pure && !rep.Region.Waiting)
}

// reached reports whether each attempt reaches the write for certain: it is
// near, or all that is sent is writes. An operation that sends others too, deep
// inside, may do so on the way to a read, as for a token.
func (rep *Repeat) reached(s fact.Send) bool {
	return s.Depth <= 1 || !slices.ContainsFunc(rep.Sends, func(o fact.Send) bool { return !o.Writes() })
}

// identifies reports whether the package gives its requests an identifier in a
// header, and not anew for each attempt of rep: by it a server may know a
// repetition. What is repeated as it was handed over carries the same one.
func (r *Result) identifies(rep *Repeat) bool {
	var within map[*ssa.Function]bool
	for _, fn := range r.Funcs {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			if !send.SetsRequestID(in) {
				continue
			}
			if within == nil {
				within = r.between(rep)
			}
			if !within[fn] {
				return true
			}
		}
	}
	return false
}

// between returns the functions that may run between two attempts of rep: the
// one that repeats, what is called again, and what its loop calls, two calls deep.
func (r *Result) between(rep *Repeat) map[*ssa.Function]bool {
	within := map[*ssa.Function]bool{rep.Fn: true, rep.Op: true}
	var reach func(fn *ssa.Function, l *dataflow.Loop, depth int)
	reach = func(fn *ssa.Function, l *dataflow.Loop, depth int) {
		for c := range dataflow.InstrsIn[*ssa.Call](fn, l) {
			if g := r.Known.Body(c.Common()); g != nil && !within[g] {
				within[g] = true
				if depth < 2 {
					reach(g, nil, depth+1)
				}
			}
		}
	}
	switch {
	case rep.Region != nil:
		reach(rep.Fn, rep.Region.Loop, 0)
	case rep.Op != nil:
		reach(rep.Op, nil, 0)
	}
	return within
}
