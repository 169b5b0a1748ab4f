package retryloop

import (
	"time"

	"golang.org/x/tools/go/ssa"
)

// Class says how a wait develops from one attempt to the next.
type Class int

// Delay is the classification of one wait's duration.
type Delay struct {
	Class Class
	Value time.Duration // when Known
	Known bool          // a compile-time constant
	Mixed bool          // server-directed, but with a fixed fallback
	Param bool          // Fixed because a parameter says so
	Name  string        // the variable or field that a fixed wait comes from
}

// flags gathers what a backward slice meets.
type flags struct {
	fixed, growing, stepped, jitter, equal, server, plug, param bool
	name                                                        string
	value                                                       *time.Duration
}

// classify tells how the duration v develops over the iterations of l.
func classify(sc *Scope, v ssa.Value, l *Loop, ops []*ssa.Call) Delay {
	if v == nil {
		return Delay{}
	}
	s := newSlicer(ops)
	s.walk(v, &frame{s: sc, l: l})
	return s.fl.delay()
}

func (fl *flags) delay() Delay {
	d := Delay{Param: fl.param, Name: fl.name}
	switch {
	case fl.equal:
		d.Class = EqualJitter
	case fl.jitter:
		d.Class = Jittered
	case fl.plug:
		d.Class = Pluggable
	case fl.growing, fl.stepped:
		d.Class = Growing
	case fl.server:
		d.Class, d.Mixed = Server, fl.fixed
	case fl.fixed:
		d.Class = Fixed
		if fl.value != nil {
			d.Value, d.Known = *fl.value, true
		}
	}
	return d
}
