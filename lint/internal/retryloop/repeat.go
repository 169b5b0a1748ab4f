package retryloop

import (
	"go/token"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Repeat is a place where requests are sent again after a failure: a region, the
// call of a helper that is given what it calls again, or that of a client which
// repeats by itself. Whether they may be sent twice is for the rules to say.
type Repeat struct {
	Fn     *ssa.Function // what is given the requests
	Region *Region       // nil for a call
	Call   *ssa.Call     // of the helper or the client, or what a loop sends by; nil for a region
	Op     *ssa.Function // what the helper calls again; nil for others
	// Sends are the requests, as Fn sees them: parameters are its own.
	Sends []fact.Send
	// ByMethod says what the method decides there.
	ByMethod Choice
}

// Choice says whether a repetition is chosen by the method of the request.
type Choice int

const (
	Blind   Choice = iota // no branch on the way looks at the method
	Perhaps               // a policy that cannot be read is asked, or is chosen by the method
	Chosen                // a branch that looks at the method decides
)

// Repeats returns the repetitions of the package's requests, in source order.
// Those that send none are left out, as are those that go on after a success,
// repeat only what a server refused, or carry a key.
// They are found once.
func (r *Result) Repeats() []*Repeat {
	if r.repeats == nil {
		r.repeats = []*Repeat{}
		for _, fn := range r.Funcs {
			r.repeats = append(r.repeats, r.repeatsIn(fn)...)
		}
	}
	return r.repeats
}

// repeatsIn returns the repetitions of one function.
func (p *finders) repeatsIn(fn *ssa.Function) (found []*Repeat) {
	if send.Keyed(fn) {
		return nil
	}
	f := p.of(fn)
	found = f.resends()
	resent := func(r *Region) bool {
		return slices.ContainsFunc(found, func(rep *Repeat) bool { return rep.Region == nil && r.Contains(rep.Call) })
	}
	for _, r := range f.regions() {
		if r.Harmless() || !r.Pure && (resent(r) || r.asTold()) {
			continue
		}
		if sends := r.Sends(); len(sends) > 0 {
			found = append(found, &Repeat{Fn: fn, Region: r, Sends: sends, ByMethod: f.choice(r.Ops[0], r)})
		}
	}
	for c := range dataflow.Instrs[*ssa.Call](fn) {
		if rep := p.repeatedBy(c); rep != nil && len(rep.Sends) > 0 {
			found = append(found, rep)
		}
	}
	return found
}

// repeatedBy returns the repetition that a helper or a client makes, which c
// calls, or nil.
func (p *finders) repeatedBy(c *ssa.Call) *Repeat {
	rep := p.byClient(c)
	if rep == nil {
		rep = p.byHelper(c)
	}
	if rep != nil {
		rep.ByMethod = max(rep.ByMethod, p.of(c.Parent()).choice(c, nil))
	}
	return rep
}

// byHelper returns the repetition of what c hands to a helper, or nil.
func (p *finders) byHelper(c *ssa.Call) *Repeat {
	op := p.retriedCallback(c)
	if h := p.contract(c.Common(), fact.UntilDone); h != nil {
		if op = p.callback(c, h); op != nil && !p.repeatsFailure(op) {
			op = nil
		}
	}
	if op == nil || send.Keyed(op) {
		return nil
	}
	rep := &Repeat{Fn: c.Parent(), Call: c, Op: op}
	for _, snd := range p.Known.Local(op).Sends {
		if snd.Method == "" && snd.Outer == 0 {
			continue // a parameter of what is called again: the helper's choice
		}
		snd.Outer = max(snd.Outer-1, 0)
		rep.Sends = fact.Add(rep.Sends, snd)
	}
	if p.refuses(op) {
		rep.ByMethod = Chosen
	}
	return rep
}

// noteRepeated notes the requests that a function repeats although its caller
// chooses the method, itself or through what it calls.
func (p *finders) noteRepeated(s *fact.Scope, sum *fact.Summary) {
	note := func(snd fact.Send) {
		if snd.Open() && !snd.Keyed {
			sum.Retried = fact.Add(sum.Retried, snd)
		}
	}
	for _, rep := range p.repeatsIn(s.Fn) {
		if rep.ByMethod == Chosen || rep.Region != nil && !rep.Region.Pure {
			continue
		}
		for _, snd := range rep.Sends {
			note(snd)
		}
	}
	if send.Keyed(s.Fn) {
		return
	}
	for c := range dataflow.Instrs[*ssa.Call](s.Fn) {
		inner := p.Known.Of(c.Common())
		if inner == nil || len(inner.Retried) == 0 || p.of(s.Fn).choice(c, nil) == Chosen {
			continue
		}
		for _, snd := range send.Through(p.Known, c, inner.Retried) {
			note(snd)
		}
	}
	for _, lit := range s.Fn.AnonFuncs { // which its function runs, or hands on to be run
		for _, snd := range p.Known.Local(lit).Retried {
			if snd.Outer > 0 {
				snd.Outer--
				note(snd)
			}
		}
	}
}

// Caller is a call that hands a method to code that repeats it.
type Caller struct {
	Call *ssa.Call
	Send fact.Send
}

// Chooser is a function that leaves the method of what is repeated to callers in
// other packages, or to some that cannot be read.
type Chooser struct {
	Fn    *ssa.Function
	Param int // by which its callers choose; -1 when not known
}

// Callers returns the calls in the package that decide the method of an open
// request of rep, through other functions too, and the functions that leave the
// choice to others.
func (r *Result) Callers(rep *Repeat, snd fact.Send) (found []Caller, beyond []Chooser) {
	type link struct {
		fn    *ssa.Function
		param int
	}
	seen := map[link]bool{}
	var visit func(fn *ssa.Function, snd fact.Send)
	visit = func(fn *ssa.Function, snd fact.Send) {
		for range snd.Outer {
			if fn.Parent() != nil {
				fn = fn.Parent()
			}
		}
		if l := (link{fn, snd.Param}); seen[l] || len(seen) > 40 {
			return
		} else {
			seen[l] = true
		}
		if _, all := r.Known.Callers(fn); !all || fn.Parent() != nil {
			beyond = append(beyond, Chooser{fn, snd.Param})
		}
		for _, c := range r.Known.Sites(fn) {
			if r.of(c.Parent()).choice(c, nil) == Chosen {
				continue
			}
			sends := send.Through(r.Known, c, []fact.Send{{Param: snd.Param}})
			if len(sends) == 0 {
				beyond = append(beyond, Chooser{c.Parent(), -1})
			}
			keyed := send.Keyed(c.Parent())
			for _, s := range sends {
				switch {
				case s.Keyed || keyed:
				case s.Open():
					visit(c.Parent(), s)
				default:
					s.Reads = s.Reads || send.ReadOnlyName(c.Parent())
					found = append(found, Caller{c, s})
				}
			}
		}
	}
	visit(rep.Fn, snd)
	return found, beyond
}

// Shape is how a caller chooses the method of what is repeated.
type Shape int

const (
	OwnType  Shape = iota // by a value of a type of one's own
	Text                  // by the method itself
	Standard              // by a request of net/http or the like, which has any
)

// Shape returns how the callers of an open request of rep choose its method.
func (rep *Repeat) Shape(snd fact.Send) Shape {
	fn := rep.Fn
	for range snd.Outer {
		if fn.Parent() != nil {
			fn = fn.Parent()
		}
	}
	if snd.Param >= len(fn.Params) {
		return OwnType
	}
	switch t := fn.Params[snd.Param].Type(); {
	case send.IsRequest(t):
		return Standard
	case dataflow.IsText(t):
		return Text
	}
	return OwnType
}

// StandsIn reports whether rep repeats what one of some functions is given, and
// that function takes the place of a client: it is given requests of net/http, or
// the method with what becomes the body.
func (rep *Repeat) StandsIn(snd fact.Send, fns []Chooser) bool {
	if rep.Shape(snd) == Standard {
		return slices.ContainsFunc(fns, func(c Chooser) bool { return standsIn(c.Fn) })
	}
	return snd.Body && slices.ContainsFunc(fns, func(c Chooser) bool { return sendsAll(c.Fn) })
}

// sendWord marks the names of functions that send whatever they are given: a
// name of a certain operation, such as Upload, says that its callers send nothing
// else.
var sendWord = regexp.MustCompile(`(?i)^(http)?(do(?-i:[^a-z]|$)|send|exec|perform|round.?trip|request|retry|with.?retr|call|(handle|make|issue)(http|raw|api)?_?request)`)

// sendsAll reports whether fn has the name of sending and can be called from
// anywhere.
func sendsAll(fn *ssa.Function) bool {
	return fn.Parent() == nil && token.IsExported(fn.Name()) && sendWord.MatchString(fn.Name())
}

// standsIn reports whether fn takes the place of a client, so that all of its
// requests come by: it yields the response, and is a literal, or sends whatever it
// is given.
func standsIn(fn *ssa.Function) bool {
	res := fn.Signature.Results()
	return res.Len() > 0 && send.IsResponse(res.At(0).Type()) && (fn.Parent() != nil || sendsAll(fn))
}

// ReadOnly reports whether the names around the repetition say that it only
// reads.
func (rep *Repeat) ReadOnly() bool {
	if rep.Region != nil {
		return rep.Region.ReadOnly()
	}
	return rep.Op != nil && send.ReadOnlyName(rep.Op)
}
