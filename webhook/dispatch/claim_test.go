package dispatch

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A lane that got all it wanted is asked again at once; one that got less waits
// for what the store says of it, or for nothing.
func TestHandMakesLanesDue(t *testing.T) {
	for _, c := range []struct {
		name string
		got  int // of two
		next []store.NextDue
		due  time.Duration // -1: not at all
	}{
		{"all", 2, nil, 0},
		{"fewer", 1, nil, -1},
		{"fewer, more is due later", 1, []store.NextDue{{Endpoint: "a", In: time.Minute}}, time.Minute},
		{"fewer, more is due already", 1, []store.NextDue{{Endpoint: "a", In: -time.Hour}}, breath},
		{"of an endpoint that is gone", 0, []store.NextDue{{Endpoint: "b", In: 0}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(200), webhook.Endpoint{})
				r.to.due = time.Time{}
				done := &store.StepResult{Next: c.next}
				for range c.got {
					done.Claimed = append(done.Claimed, *r.job().delivery)
				}
				r.d.hand(claim{of: []*receiver{r.to}, specs: []store.Lane{{Endpoint: "a", Max: 2}}}, done)
				r.d.workers.Wait()
				if due := r.to.due; due.IsZero() != (c.due < 0) || c.due >= 0 && time.Until(due) != c.due {
					t.Errorf("due in %v, want %v", time.Until(due), c.due)
				}
				if n := len(r.d.outcomes); n != c.got {
					t.Errorf("%d jobs done of %d", n, c.got)
				}
			})
		})
	}
}

// One claim is bounded, however many lanes want work; the others are asked right
// after it.
func TestClaimIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		for i := range 60 {
			e := webhook.Endpoint{ID: fmt.Sprint("e", i), URL: "https://example.com/"}
			if _, err := r.store.PutEndpoint(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.d.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := r.d.wants()
		if len(c.of) != maxClaim/50 || !c.again.Equal(time.Now()) {
			t.Errorf("%d lanes of 61 want 50 each, again in %v", len(c.of), time.Until(c.again))
		}
		if c = r.d.wants(); len(c.of) != 61-maxClaim/50 || !c.again.IsZero() {
			t.Errorf("%d lanes are left, again in %v", len(c.of), time.Until(c.again))
		}
	})
}
