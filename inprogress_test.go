package forbear_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// A server that is still at work on the call's own key has not failed: the call
// comes back when it was told to, as often as R-2 lets it, and neither the budget nor
// the breaker counts that. Without a word on when, it is a retry like any other.
func TestInProgressIsNoFailure(t *testing.T) {
	working := forbear.Failure{Class: forbear.ClassTransient, Type: "in_progress", Hint: forbear.Hint{Floor: time.Second, SameKey: true}}
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		tokens budget.Budget
	}{
		{"token bucket", budget.NewTokenBucket(0, 0)},
		{"gRPC's", budget.NewGRPC(10, 0.1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := forbear.New("shop", forbear.Policy{}, forbear.WithoutLog(), forbear.WithBudget(tc.tokens))
			if err != nil {
				t.Fatal(err)
			}
			full := tc.tokens.Level(at)
			for range 200 {
				s := forbear.State{NeedsKey: true, Key: "k"}
				for attempt := 1; attempt <= 4; attempt++ {
					d := r.Next(&s, working, at)
					if want := attempt < 4; d.Retry != want || want && d.Wait < time.Second {
						t.Fatalf("attempt %d: %+v, want a retry after a second: %v", attempt, d, want)
					}
					edge.Refund(r, d, at)
				}
			}
			if got := tc.tokens.Level(at); got != full {
				t.Errorf("the budget reads %+v, before %+v", got, full)
			}
			if got := r.Breaker().State(); got != breaker.Closed {
				t.Errorf("the breaker is %v", got)
			}
		})
	}
	r, err := forbear.New("shop", forbear.Policy{}, forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	working.Hint.Floor = 0
	if d := r.Next(&forbear.State{}, working, at); d.Reason != reason.Budget {
		t.Errorf("without a wait of the server's: %+v, want it to cost the budget", d)
	}
}
