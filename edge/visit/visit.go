// Package visit is how the attempts of one call learn of each other's addresses. A
// transport that chooses among several addresses of a dependency notes in the
// context of an attempt where it went; the layer that retries hands that on to the
// next attempt, and reports the outcome of this one. So the choice stays below the
// retries and the judgement above them, where a timeout can be told from a caller
// that has left.
package visit

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/forbear-go/forbear"
)

// Place is an address that an attempt has gone to. Ended is called once, with what
// came of the attempt, up to the headers of the response.
type Place interface {
	Ended(f forbear.Failure)
}

// Visit is the context of one attempt. It costs no allocation where the transport
// below has one address, since then nothing is noted. Make it ready with
// [Visit.Begin]; it is safe for concurrent use from then on.
type Visit struct {
	context.Context
	before *step                // of the attempts before
	own    atomic.Pointer[step] // of this one; nil until it is noted
}

// step is one place. The steps of a call are a list, the latest first.
type step struct {
	place  Place
	before *step
}

// Begin makes the context of an attempt out of that of its call; last is the attempt
// before it, or nil.
func (v *Visit) Begin(ctx context.Context, last *Visit) {
	v.Context = ctx
	if last != nil {
		v.before = last.steps()
	}
}

func (v *Visit) steps() *step {
	if own := v.own.Load(); own != nil {
		return own
	}
	return v.before
}

// key is where a context has its Visit.
type key struct{}

// Value implements [context.Context].
func (v *Visit) Value(k any) any {
	if k == (key{}) {
		return v
	}
	return v.Context.Value(k)
}

// Of returns the attempt that ctx belongs to, or nil where no layer above reports
// how it ends.
func Of(ctx context.Context) *Visit {
	v, _ := ctx.Value(key{}).(*Visit)
	return v
}

// To notes where the attempt goes. ok is false when it went somewhere before: a
// layer in between repeats requests by itself, and what is reported later belongs to
// the first.
func (v *Visit) To(p Place) (ok bool) {
	return v.own.CompareAndSwap(nil, &step{place: p, before: v.before})
}

// Before returns where the earlier attempts of the call went, the latest first. It
// is empty for a first attempt.
func (v *Visit) Before() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for s := v.before; s != nil; s = s.before {
			if !yield(s.place) {
				return
			}
		}
	}
}

// Retry reports whether an earlier attempt of the call went anywhere.
func (v *Visit) Retry() bool { return v.before != nil }

// End reports the outcome of the attempt to the place that it went to.
func (v *Visit) End(f forbear.Failure) {
	if s := v.own.Load(); s != nil {
		s.place.Ended(f)
	}
}
