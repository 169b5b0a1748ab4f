package rule

import (
	"fmt"
	"go/token"
	"slices"

	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Evidence is one fact that a finding rests on, or that speaks against it.
// Against facts lower the confidence; the others raise it together.
type Evidence struct {
	Text    string
	Pos     token.Pos // where it is seen; invalid when no one place shows it
	Against bool
}

// weigh lists what is known of a region, and says how sure it is by it that the
// region is a retry of a call across a boundary.
//
// Each fact is a thing that is there or not, so that they can be counted. A
// failure that leads to another attempt is in nearly every region; a clear case
// has three facts more, and one more still for each that speaks against it, since
// names and shapes of pollers are found around retries too. What stays on the
// machine and what knows failure from a bool only is never clear; nor is what a
// ticker paces, unless the loop counts its attempts, calls them so, and ends with
// the first success.
func weigh(r *retryloop.Region) (c Confidence, facts []Evidence) {
	count := func(holds bool, pos token.Pos, text string) {
		if holds {
			facts = append(facts, Evidence{Text: text, Pos: pos})
		}
	}
	against := func(holds bool, pos token.Pos, text string) bool {
		if holds {
			facts = append(facts, Evidence{Text: text, Pos: pos, Against: true})
		}
		return holds
	}
	var test, wait, op token.Pos
	if len(r.Tests) > 0 {
		test = r.Tests[0].If.Cond.Pos()
	}
	if len(r.Waits) > 0 {
		wait = r.Waits[0].Instr.Pos()
	}
	if len(r.Ops) > 0 {
		op = r.Ops[0].Pos()
	}
	// A loop that goes on after a success, and waits after a failure alone, retries
	// in the midst of other work.
	byFailure := !r.Pure && len(r.Waits) > 0 && len(r.Tests) > 0
	count(!r.Weak, test, "a failure of "+Ops(r)+" leads to another attempt")
	count(r.Pure, token.NoPos, "a success ends it")
	count(len(r.Waits) > 0 && !r.WaitFirst, wait, "it waits after a failure")
	count(byFailure, wait, "after a success it does not wait so")
	count(r.Counts(), token.NoPos, "it counts the attempts")
	count(r.Spoken, token.NoPos, "its names speak of trying again")
	count(r.Boundary == send.Remote, op, Ops(r)+" leaves the process")
	count(r.Boundary == send.Unknown && r.Interruptible(), op, Ops(r)+" takes a context and may fail, as calls of other services do")
	count(r.Starts, op, Ops(r)+" goes on until it fails")
	count(r.Starts && len(r.Tests) == 0 && len(r.Waits) > 0, wait, "whenever it ends, it is started again after a wait")
	pro := len(facts)

	ticker := against(slices.ContainsFunc(r.Waits, func(w *delay.Wait) bool { return w.Ticker }), wait, "a ticker paces it, as it does a poller")
	waiting := against(r.Waiting, token.NoPos, "its names speak of waiting for a state")
	local := against(r.Boundary == send.Local, op, Ops(r)+" stays on this machine")
	against(r.Weak, test, "only a bool or a missing result tells the failure")
	against(r.Refuses, test, "an answer that is not accepted is asked for again too, as a poller does")
	against(!r.Pure && !r.Starts && !byFailure, token.NoPos, "it goes on after a success too")
	against(r.WaitFirst && !r.Spoken, wait, "it waits before the first attempt too, as pollers do")
	against(r.Delay.Default, wait, "its users may replace the wait")
	contra := len(facts) - pro
	paced := ticker && !(r.Pure && r.Spoken && r.Counts())
	switch {
	case local, waiting && ticker: // a file, a child process
		return Low, facts
	case paced, r.Weak, r.Refuses, pro-contra < 4:
		return Medium, facts
	}
	return High, facts
}

// RegionConfidence is how sure it is that a region is a retry of a call across a
// boundary.
func RegionConfidence(r *retryloop.Region) Confidence {
	c, _ := weigh(r)
	return c
}

// Describe says in one line what a region does, for those who ask why nothing is
// reported of it.
func Describe(r *retryloop.Region) string {
	text := "retries " + Ops(r) + " without waiting"
	if len(r.Waits) > 0 {
		text = "retries " + Ops(r) + ", and its wait is " + r.Delay.Class.String()
	}
	if r.Bound.Known {
		text += fmt.Sprintf(", up to %d times", r.Bound.Limit)
	}
	return text
}

// Facts lists what is known of a region.
func Facts(r *retryloop.Region) []Evidence {
	_, facts := weigh(r)
	return facts
}
