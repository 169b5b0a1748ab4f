package delay

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Turn is one turn of a retry without a loop: the functions that lead from one
// attempt to the next, the first of which is called again by the last.
type Turn struct {
	Links []Link
	Back  []ssa.Value // what the first function is given then; nil when not seen
}

// Link is one function of a turn.
type Link struct {
	Scope *fact.Scope
	Args  []ssa.Value // what the function before gives it
	Waits []*Wait
}

// Delay is the verdict on the waits of a turn. A parameter of the first function
// is what its caller passed at first, and what the last one passes on from then:
// a wait that is computed from itself on the way grows.
func (t *Turn) Delay(ops []*ssa.Call) Delay {
	var frames []*frame
	for i, k := range t.Links {
		fr := &frame{s: k.Scope, depth: i}
		if i > 0 {
			fr.args, fr.up = k.Args, frames[i-1]
		}
		frames = append(frames, fr)
	}
	first, last := frames[0], frames[len(frames)-1]
	first.again, first.againFrom = t.Back, last
	if first.again == nil {
		first.again = []ssa.Value{}
	}
	return merge(func(yield func(*Wait, *frame) bool) {
		for i, k := range t.Links {
			for _, w := range k.Waits {
				if !yield(w, frames[i]) {
					return
				}
			}
		}
	}, ops)
}
