package visit_test

import (
	"context"
	"slices"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/visit"
)

type place struct {
	name  string
	ended []forbear.Class
}

func (p *place) Ended(f forbear.Failure) { p.ended = append(p.ended, f.Class) }

// A retry knows where the attempts before it went, and each place hears of its own
// attempt alone.
func TestVisits(t *testing.T) {
	if visit.Of(t.Context()) != nil {
		t.Error("a context of no attempt has a visit")
	}
	a, b := &place{name: "a"}, &place{name: "b"}
	var first, second, third, fourth visit.Visit
	first.Begin(t.Context(), nil)
	ctx, cancel := context.WithCancel(&first)
	defer cancel()
	v := visit.Of(ctx)
	if v != &first || v.Retry() {
		t.Fatalf("got %p, retry %v; want the first attempt", v, v.Retry())
	}
	if !v.To(a) || v.To(b) {
		t.Error("an attempt goes to one place, the first that is noted")
	}
	v.End(forbear.Failure{Class: forbear.ClassTransient})

	second.Begin(t.Context(), &first) // fails before it goes anywhere
	second.End(forbear.Failure{Class: forbear.ClassTerminal})
	third.Begin(t.Context(), &second)
	third.To(b)
	third.End(forbear.Failure{Class: forbear.ClassSuccess})
	fourth.Begin(t.Context(), &third)

	if got := slices.Collect(fourth.Before()); !slices.Equal(got, []visit.Place{b, a}) || !fourth.Retry() {
		t.Errorf("before the fourth attempt: %v, want b, a", got)
	}
	for range fourth.Before() {
		break // a caller may stop looking
	}
	if !slices.Equal(a.ended, []forbear.Class{forbear.ClassTransient}) || !slices.Equal(b.ended, []forbear.Class{forbear.ClassSuccess}) {
		t.Errorf("a %v, b %v", a.ended, b.ended)
	}
}
