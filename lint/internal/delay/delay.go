// Package delay finds what lets time pass between attempts and says how that
// time develops: the same every time, growing without jitter, with equal
// jitter, random, as the server asks.
//
// The verdict is made in [Classify]; what counts as a wait, in [WaitOf].
package delay

import (
	"time"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Delay is the classification of one wait's duration.
type Delay struct {
	Class fact.Class
	Value time.Duration // when Known
	Known bool          // a compile-time constant
	Mixed bool          // server-directed, but with a fixed fallback
	Param bool          // Fixed because a parameter says so
	Name  string        // the variable or field that a fixed wait comes from
}

// Classify tells how the duration v develops over the iterations of l.
func Classify(sc *fact.Scope, v ssa.Value, l *dataflow.Loop, ops []*ssa.Call) Delay {
	if v == nil {
		return Delay{}
	}
	s := newSlicer(ops)
	s.walk(v, &frame{s: sc, l: l})
	return s.fl.delay()
}

// Merge merges the classes of the region's waits: the most careful one wins,
// and one wait that nobody can judge silences the rest.
func Merge(s *fact.Scope, waits []*Wait, l *dataflow.Loop, ops []*ssa.Call) Delay {
	if len(waits) == 0 {
		return Delay{Class: fact.Immediate}
	}
	var best Delay
	for i, w := range waits {
		d := Delay{}
		switch {
		case w.Fact != nil:
			d.Class = w.Fact.Class
		case w.D != nil:
			d = Classify(s, w.D, l, ops)
		}
		if d.Class == fact.Pluggable {
			return d
		}
		if i == 0 || d.Class > best.Class {
			best = d
		}
	}
	return best
}

// flags gathers what a backward slice meets.
type flags struct {
	fixed, growing, stepped, jitter, equal, server, plug, param bool
	name                                                        string
	value                                                       *time.Duration
}

func (fl *flags) delay() Delay {
	d := Delay{Param: fl.param, Name: fl.name}
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
		d.Class, d.Mixed = fact.Server, fl.fixed
	case fl.fixed:
		d.Class = fact.Fixed
		if fl.value != nil {
			d.Value, d.Known = *fl.value, true
		}
	}
	return d
}
