package retryloop

import (
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
		sum.Fails, sum.Yes, sum.No, sum.Guessed = p.Judge.Outcome(s)
		sum.Status = p.Judge.Status(s)
	}
	f := p.of(s.Fn)
	for _, r := range f.regions() {
		noteRetry(sum, r)
	}
	for _, r := range f.asking {
		if h := r.retrier(); h != nil && len(r.Waits) > 0 {
			h.Contract = fact.UntilDone
			sum.Retrier = h.Join(sum.Retrier)
		}
	}
	if r := s.Fn.Signature.Results(); len(s.Fn.Blocks) > 0 && r.Len() > 0 && dataflow.IsBool(r.At(0).Type()) {
		sum.ByMethod = p.byMethod(s.Fn) == Chosen
	}
	if sum.Retrier == nil {
		sum.Retrier = f.handsOn()
		sum.Retries = sum.Retries || sum.Retrier != nil && sum.Retrier.Contract == fact.OnFailure
	}
	p.noteRepeated(s, sum)
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

// noteRetry notes that the function has the region r. Of a loop that polls, only
// the contract is noted, where its package speaks of retries: retry.Until. Callers
// that retry it do not multiply attempts; those of any other region do.
func noteRetry(s *fact.Summary, r *Region) {
	if r.Pure && r.Waiting && saysRetry(dataflow.PathOf(r.Fn)) {
		if h := r.retrier(); h != nil {
			h.Contract = fact.UntilDone
			s.Retrier = h.Join(s.Retrier)
		}
	}
	if !r.Pure || r.Waiting {
		return
	}
	s.Retries = true
	if h := r.retrier(); h != nil {
		s.Retrier = h.Join(s.Retrier)
	}
	// Of several, the most: retries around them multiply by no more.
	if r.Bound.Known {
		s.Attempts = max(s.Attempts, int(r.Bound.Limit))
	}
}
