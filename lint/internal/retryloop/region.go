// Package retryloop finds retries: regions of code that are entered again
// because a call in them failed. Every analyzer of forbear's lint builds on
// its result.
//
// Polling (the failure leaves, "not yet" stays), tickers (success and failure
// meet in the same wait), iteration over items (each turn is another
// operation), compare-and-swap and lock loops are not retries.
//
// What the region finder puts together is judged below it: waits in the package
// delay, limits in bound, requests and boundaries in send, statuses in status.
package retryloop

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/bound"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// Region is one retry: a loop, or a function that calls itself, in which a
// failure of an operation leads to another attempt at the same operation. What
// it holds is fixed when it is found; its methods look into the code again.
// The flags are evidence for the confidence of a rule; none of them makes a
// region by itself.
type Region struct {
	Fn    *ssa.Function
	Loop  *dataflow.Loop // nil for a recursion
	Pos   token.Pos      // the loop keyword, or the recursive call
	Node  ast.Node       // the loop statement, when there is one
	Tests []*Test        // the branches on failure that lead to another attempt
	Ops   []*ssa.Call    // the operations that are attempted again
	Waits []*delay.Wait  // what lets time pass before another attempt
	Delay delay.Delay    // how the waits develop
	Bound bound.Bound
	// Pure regions end with the first success. The others go on after a
	// success with something else, as consumers do.
	Pure bool
	// Spoken regions say that they retry, by the names in and around them.
	Spoken bool
	// Waiting regions say that they wait for something, by their names.
	Waiting bool
	// WaitFirst regions wait before the first attempt too, as pollers do.
	WaitFirst bool
	Boundary  send.Boundary // of the operations, the farthest
	// Weak regions know failure only from a bool result.
	Weak bool
	// Refuses says that an answer that is not accepted leads to another attempt
	// too. A poller does that as well, so that its names have to tell.
	Refuses bool
	// Callback regions attempt a function that was handed to them. Asked ones know
	// of its failure no more than what it says: that it is not done.
	Callback, Asked bool
	// Starts regions start something that goes on until it fails, so that what
	// comes after a success is no end that they lack.
	Starts bool

	self *ssa.Call // of a recursion, the call that leads back
	f    *finder
}

// finders finds and remembers the regions of a package's functions, with all
// that is known of the package meanwhile. Whether a callee retries is asked
// while its caller is judged, so that regions are found on demand.
// It is made once for a package and is not safe for concurrent use.
type finders struct {
	Known *fact.Table   // what is known of functions, those of other packages too
	Judge *status.Judge // what functions do with a status
	memo  map[*ssa.Function]*finder
	// methods holds whether functions compare the method of a request.
	methods map[*ssa.Function]Choice
	reading bool // the code of one function is read for that, and no other
	// clients holds what the package configures of clients that retry by
	// themselves; nil until it is asked for.
	clients map[string]ownClient
	// replaced holds the libraries whose waits the package sets, or does not.
	replaced map[string]bool
	// held are the clients of net/http that fields hold, once they are asked for.
	held map[*types.Var]ssa.Value
}

// newFinders returns the finders of a package, which may be nil.
// The table asks back for summaries, which is why it is given a method of p.
func newFinders(pass *analysis.Pass, pkg *ssa.Package) *finders {
	p := &finders{memo: map[*ssa.Function]*finder{}, methods: map[*ssa.Function]Choice{}, replaced: map[string]bool{}}
	p.Known = fact.NewTable(pass, pkg, p.summarize)
	p.Judge = status.New(p.Known)
	return p
}

// of returns the region finder of fn, made once.
func (p *finders) of(fn *ssa.Function) *finder {
	f := p.memo[fn]
	if f == nil {
		f = &finder{Scope: p.Known.Scope(fn), pkg: p}
		p.memo[fn] = f
	}
	return f
}

// finder finds the regions of one function. done is set before they are sought:
// a function that leads back to itself sees none of its own.
type finder struct {
	*fact.Scope
	pkg   *finders
	done  bool
	found []*Region // once done
	// asking are loops around a function that was handed over, which says by a
	// bool whether it is done.
	asking []*Region
}

// regions returns the retries of the function.
func (f *finder) regions() []*Region {
	if f.done {
		return f.found
	}
	f.done = true
	var found []*Region
	for _, l := range f.Loops {
		if r := f.region(l); r != nil {
			found = append(found, r)
		}
	}
	if r := f.recursion(); r != nil {
		found = append(found, r)
	}
	f.found = found
	return found
}

// restarts returns what the function starts again without a branch on a failure.
func (f *finder) restarts() []*Region {
	found := f.handedOn()
	for _, l := range f.Loops {
		if slices.ContainsFunc(f.regions(), func(r *Region) bool { return r.Loop == l }) {
			continue
		}
		if r := f.supervision(l); r != nil {
			found = append(found, r)
		}
	}
	return found
}

// region judges one loop; nil when it is no retry. It follows each test of a
// failure both ways: the failure must lead to another attempt at the same
// operation, and then a success must not, or only past other work.
// Each condition below takes away a kind of loop that looks like a retry and is
// none.
func (f *finder) region(l *dataflow.Loop) *Region {
	tests := besideErrors(unasked(f.tests(l), l), l)
	if len(tests) == 0 {
		return nil
	}
	r := &Region{Fn: f.Fn, Loop: l, f: f, Pure: true}
	onFailure, onSuccess := r.follow(tests)
	if len(r.Tests) == 0 || onlyBy(othersWord, r.Tests, l) {
		return nil
	}
	turns := &sides{l: l, tests: r.Tests, onFailure: onFailure, onSuccess: onSuccess}
	refuses := r.Refuses && !r.Pure
	r.Refuses = false
	if r.Waits = f.regionWaits(r, turns); refuses && len(r.Waits) == 0 {
		r.Refuses = true
		r.Waits = f.regionWaits(r, turns)
	}
	// A loop that goes on in any case, and waits for nothing after a failure, walks
	// over items, makes so many of them or accepts connections, is a consumer that
	// takes the next one.
	if !r.Pure && (len(r.Waits) == 0 || dataflow.ItemLoop(f.Func, l) || dataflow.CountsTurns(l) || f.accepts(l)) {
		return nil
	}
	r.Weak = !slices.ContainsFunc(r.Tests, func(t *Test) bool { return !t.Bool })
	r.Asked = !slices.ContainsFunc(r.Tests, func(t *Test) bool { return !t.Asked })
	f.describe(r)
	if r.Refuses && (!r.Spoken || r.Waiting) {
		return nil
	}
	if r.Asked {
		f.asking = append(f.asking, r)
		if !r.Spoken || !r.Pure {
			return nil // what is not done may not have failed
		}
	}
	if r.Weak && !(r.Spoken && r.Pure) && !slices.ContainsFunc(r.Tests, func(t *Test) bool { return !t.lone() }) {
		return nil // a nil result may mean that there is nothing yet
	}
	// Without a wait, most loops that go on after a failure are no retries.
	if len(r.Waits) == 0 && !r.immediate() {
		return nil
	}
	return r
}

// accepts reports whether a loop takes the next connection of a listener.
func (f *finder) accepts(l *dataflow.Loop) bool {
	for c := range dataflow.InstrsIn[*ssa.Call](f.Fn, l) {
		if strings.HasPrefix(dataflow.CalleeName(c.Common()), "Accept") && dataflow.CalleePkg(c.Common()) == "net" {
			return true
		}
	}
	return false
}

// ownBlock reports whether b belongs to l itself and to no loop inside it that
// could be a region of its own; a wait in a select loop still counts.
// The waits of an inner retry belong to the inner one alone.
func (f *finder) ownBlock(b *ssa.BasicBlock, l *dataflow.Loop) bool {
	in := f.Innermost[b]
	if in == l {
		return true
	}
	if in == nil || in.Parent != l {
		return false
	}
	return !slices.ContainsFunc(f.tests(in), func(t *Test) bool { return len(t.Ops) > 0 })
}

// describe fills in what follows from the operations, the waits and the names.
// The order matters: the name of the wait is among the names that are read.
func (f *finder) describe(r *Region) {
	for _, c := range r.Ops {
		r.Boundary = max(r.Boundary, send.BoundaryOf(f.Known, c.Common()))
		if c.Common().IsInvoke() || !f.handed(c.Common().Value) {
			continue
		}
		r.Callback = true
		if p, ok := c.Common().Value.(*ssa.Parameter); ok {
			r.Boundary = max(r.Boundary, f.handedBoundary(p))
		}
	}
	if r.Loop != nil {
		r.Delay = delay.Merge(f.Scope, r.Waits, r.Loop, r.Ops)
		r.Bound = bound.Of(f.Scope, r.Loop, r.Ops)
		r.Node = loopNode(r)
		r.WaitFirst = delay.First(f.Scope, r.Loop, r.Waits, r.Ops)
	}
	if r.Node != nil {
		r.Pos = r.Node.Pos()
	} else if !r.Pos.IsValid() && len(r.Ops) > 0 {
		r.Pos = r.Ops[0].Pos()
	}
	r.words()
	r.Starts = r.Starts || !r.Pure && slices.ContainsFunc(r.Ops, func(c *ssa.Call) bool {
		_, proved := f.lasting(c)
		return proved
	})
}

// handedBoundary says where the functions go that the package hands over as the
// parameter p: to the farthest, when all callers are known.
func (f *finder) handedBoundary(p *ssa.Parameter) (b send.Boundary) {
	i := slices.Index(f.Fn.Params, p)
	calls, all := f.Known.Callers(f.Fn)
	for _, c := range calls {
		if i < 0 || i >= len(c.Args) {
			return send.Unknown
		}
		fn, _ := dataflow.FuncValue(c.Args[i])
		if fn == nil {
			all = false
			continue
		}
		to := send.BoundaryOf(f.Known, &ssa.CallCommon{Value: fn})
		all = all && to != send.Unknown
		b = max(b, to)
	}
	if b == send.Local && !all {
		return send.Unknown
	}
	return b
}

// anyHas reports whether one of the sets holds b.
func anyHas(sets []map[*ssa.BasicBlock]bool, b *ssa.BasicBlock) bool {
	return slices.ContainsFunc(sets, func(s map[*ssa.BasicBlock]bool) bool { return s[b] })
}

// appendNew adds the operations that are not there yet. An operation may be
// tested more than once: for its error, and for its status.
// The order stays that of the code, since messages name the first ones. Calls
// are compared, not callees: the same function may be called twice.
func appendNew(ops, more []*ssa.Call) []*ssa.Call {
	for _, c := range more {
		if !slices.Contains(ops, c) {
			ops = append(ops, c)
		}
	}
	return ops
}
