package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// summarize fills in what callers need to know of a function. The parts come
// from the packages that judge them; regions come last, since they ask for the
// summaries of the functions that they call.
func (p *finders) summarize(s *fact.Scope, sum *fact.Summary) {
	calls(s, sum)
	sum.Makes = send.Made(s)
	if len(s.Fn.Blocks) > 0 && s.Fn.Signature.Results().Len() > 0 {
		sum.Delay, sum.Clock = delay.Result(s), delay.Clock(s)
		sum.Fails, sum.Yes, sum.No = p.Judge.Outcome(s)
		sum.Status = p.Judge.Status(s)
	}
	f := p.of(s.Fn)
	for _, r := range f.regions() {
		noteRetry(sum, r)
	}
	for _, r := range f.asking {
		noteUntil(s, sum, r)
	}
	f.handsUntil(sum)
	p.noteRepeated(s, sum)
	if r := s.Fn.Signature.Results(); len(s.Fn.Blocks) > 0 && r.Len() > 0 && isBool(r.At(0).Type()) {
		sum.ByMethod = p.byMethod(s.Fn, 0)
	}
	if sum.Retrier == nil {
		if sum.Retrier = f.handsOn(p.helper); sum.Retrier != nil {
			sum.Retries = true
		}
	}
	if sum.Poller == nil {
		sum.Poller = f.handsOn(p.poller)
	}
	sum.Errors = p.makes(s.Fn)
	if a := f.predicate(0); a.known {
		sum.Asks, sum.AsksNot = a.kinds, a.not
	}
}

// calls gathers what a function's calls do: waits outside loops, requests,
// remote calls. A wait in a loop belongs to that loop; the first one outside
// makes the function a helper that waits. It is a bare one when it does little
// else, and then counts as a wait under any name.
func calls(s *fact.Scope, sum *fact.Summary) {
	keyed := send.MentionsKey(s.Fn)
	others := 0
	for _, b := range s.Fn.Blocks {
		for _, in := range b.Instrs {
			c, isCall := in.(*ssa.Call)
			if s.Innermost[b] == nil && sum.Wait == nil {
				if w := delay.WaitOf(s, in, nil); w != nil && (w.D != nil || w.Fact != nil) && !w.Ticker {
					sum.Wait = delay.OfFunc(s, w)
					continue
				}
			}
			if a, ok := in.(*ssa.Alloc); ok {
				for _, snd := range send.Literal(a) {
					snd.Keyed = keyed
					sum.AddSend(snd)
				}
			}
			if !isCall {
				continue
			}
			if !send.OnlyComputes(dataflow.CalleePkg(c.Common())) && dataflow.CalleePkg(c.Common()) != "" {
				others++
			}
			send.Effects(s.Known, c, keyed, sum)
		}
	}
	if len(sum.Sends) > 0 && send.ReadOnlyName(s.Fn) {
		for i := range sum.Sends {
			sum.Sends[i].Reads = true
		}
	}
	if sum.Wait != nil {
		sum.Wait.Bare = others <= 3 && !sum.Remote && len(sum.Sends) == 0 && dataflow.TellsNothing(s.Fn.Signature)
	}
}

// handsUntil notes that a function hands its own parameter to one that calls it
// until it is done: Until(ctx, accept) for (&Retryer{}).Until(ctx, accept).
func (f *finder) handsUntil(sum *fact.Summary) {
	if sum.Until != nil {
		return
	}
	for c := range dataflow.Instrs[*ssa.Call](f.Fn) {
		given := f.Known.Of(c.Common())
		if given == nil || given.Until == nil || given.Retrier != nil || !slices.ContainsFunc(c.Common().Args, f.handed) {
			continue
		}
		until := *given.Until
		if until.Param >= 0 && until.Param < len(c.Common().Args) {
			until = *delay.OfFunc(f.Scope, &delay.Wait{Instr: c, D: c.Common().Args[until.Param]})
		}
		sum.Until = &until
		return
	}
}

// noteRetry notes that the function has the region r. A loop that polls is noted
// apart, and only where its package speaks of retries: retry.Until. Callers that
// retry it do not multiply attempts.
// A caller that retries such a function multiplies the attempts.
func noteRetry(s *fact.Summary, r *Region) {
	if r.Pure && r.Waiting && retryWord.MatchString(dataflow.PathOf(r.Fn)) {
		if h := r.retrier(); h != nil {
			s.Poller = h.Join(s.Poller)
		}
	}
	if !r.Pure || r.Waiting {
		return
	}
	s.Retries = true
	if h := r.retrier(); h != nil {
		s.Retrier = h.Join(s.Retrier)
	}
	if r.Bound.Known {
		s.Attempts = int(r.Bound.Limit)
	}
}
