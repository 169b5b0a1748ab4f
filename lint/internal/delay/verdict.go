// Package delay finds what lets time pass between attempts and says how that
// time develops: the same every time, growing without jitter, with equal
// jitter, random, as the server asks.
//
// The verdict is made in [Classify]; what counts as a wait, in [WaitOf].
package delay

import (
	"iter"
	"slices"
	"time"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Delay is the verdict on one wait, or on all waits of a region together.
// The zero value is Pluggable: nothing is known, and no rule reports it.
type Delay struct {
	Class fact.Class
	Value time.Duration // when Known
	Known bool          // a compile-time constant
	Mixed bool          // server-directed, but with a fixed fallback
	Param bool          // Fixed because a parameter says so
	Name  string        // the variable or field that a fixed wait comes from
	// Default verdicts rest on what a package does unless its users say otherwise.
	Default bool
}

// Classify says how the duration v develops over the iterations of l, which is
// nil for a wait outside of loops. ops are the operations of the region: what a
// wait takes from their results is the server's word.
//
// The duration is sliced backwards, through variables, arithmetic and helpers
// of the package. A nil v is decided elsewhere.
func Classify(sc *fact.Scope, v ssa.Value, l *dataflow.Loop, ops []*ssa.Call) Delay {
	if v == nil {
		return Delay{}
	}
	s := newSlicer(ops)
	s.walk(v, &frame{s: sc, l: l})
	return s.fl.delay()
}

// Merge is the verdict on several waits of a region: the most careful one wins,
// and one wait that cannot be judged silences the rest. Without any wait the
// next attempt follows at once.
func Merge(s *fact.Scope, waits []*Wait, l *dataflow.Loop, ops []*ssa.Call) Delay {
	if !slices.ContainsFunc(waits, func(w *Wait) bool { return !w.optional(s) }) {
		return Delay{Class: fact.Immediate, Default: len(waits) > 0}
	}
	return merge(func(yield func(*Wait, *frame) bool) {
		for _, w := range waits {
			if !yield(w, &frame{s: s, l: l}) {
				return
			}
		}
	}, ops)
}

// merge is the verdict on waits, each with the function that it stands in.
func merge(waits iter.Seq2[*Wait, *frame], ops []*ssa.Call) Delay {
	var best Delay
	first := true
	for w, fr := range waits {
		d := w.verdict(fr, ops)
		if d.Class == fact.Pluggable {
			return d
		}
		if first {
			best, first = d, false
		} else {
			best = best.or(d)
		}
	}
	return best
}

// or is the verdict on two waits, either of which a turn may come to. The more
// careful one wins; but what grows where the server says nothing grows.
func (d Delay) or(o Delay) Delay {
	if d.Class < o.Class {
		d, o = o, d
	}
	if d.Class == fact.Server && o.Class == fact.Growing {
		return o
	}
	d.Mixed = d.Mixed || d.Class == fact.Server && o.Class == fact.Fixed
	return d
}

// verdict is that on one wait. What a helper of the package waits for is judged
// where it waits, with what it is given, as the number of the attempt; three
// helpers deep.
func (w *Wait) verdict(fr *frame, ops []*ssa.Call) Delay {
	if w.D != nil {
		s := newSlicer(ops)
		s.walk(w.D, fr)
		return s.fl.delay()
	}
	if w.Fact == nil {
		return Delay{}
	}
	known := Delay{Class: w.Fact.Class, Default: w.Fact.Default}
	c, isCall := w.Instr.(*ssa.Call)
	if !isCall || w.After != nil || fr.depth >= 3 {
		return known
	}
	fn := fr.s.Known.Body(c.Common())
	if fn == nil {
		return known
	}
	sub := &frame{s: fr.s.Known.Scope(fn), args: c.Common().Args, up: fr, depth: fr.depth + 1}
	inner := merge(func(yield func(*Wait, *frame) bool) {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			if sub.s.Innermost[in.Block()] != nil {
				continue
			}
			for _, i := range WaitsOf(sub.s, in, nil) {
				if !i.Ticker && !yield(i, sub) {
					return
				}
			}
		}
	}, ops)
	inner.Default = inner.Default || known.Default
	return inner
}

// flags gathers what a backward slice meets on its way through the definition
// of a duration. Several hold as a rule: a doubled wait is fixed at its start,
// and grows. delay says which of them counts.
type flags struct {
	fixed, growing, stepped, jitter, equal, server, plug, param bool
	number                                                      bool // a parameter is a number, and no duration
	scaled                                                      bool // by a parameter, which is the number of the attempt
	byDefault                                                   bool
	name                                                        string
	value                                                       *time.Duration
}

// delay is the verdict on what was met. The order of the cases is the rule:
// randomness anywhere makes the wait random, half of it if equal jitter was
// recognized. What is decided elsewhere silences the rest, since it may be
// random too. Only then does growth count, and the server's word before a
// constant: a loop that falls back on a constant is Mixed.
func (fl *flags) delay() Delay {
	d := Delay{Param: fl.param, Name: fl.name, Default: fl.byDefault}
	switch {
	case fl.equal:
		d.Class = fact.EqualJitter
	case fl.jitter:
		d.Class = fact.Jittered
	case fl.plug:
		d.Class = fact.Pluggable
	case fl.growing, fl.stepped:
		d.Class = fact.Growing
	case fl.server:
		// Zero is no wait to fall back on.
		none := fl.value != nil && *fl.value == 0 && fl.name == ""
		d.Class, d.Mixed = fact.Server, fl.fixed && !none
	case fl.fixed:
		d.Class = fact.Fixed
		if fl.value != nil && (*fl.value > 0 || fl.name == "" && !fl.byDefault) {
			d.Value, d.Known = *fl.value, true
		}
	}
	return d
}
