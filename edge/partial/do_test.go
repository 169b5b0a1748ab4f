package partial_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge/partial"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

//forbear:plain hours of calls in virtual time; each edge is raced in its own package

var errStatus = errors.New("no success")

// byDo is a partial.Client.
func byDo(r *forbear.Retryer, send partial.Send) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return r.Do(ctx, func(ctx context.Context) error {
			status, err := send(ctx)
			if err == nil && status != http.StatusOK {
				err = forbear.Retryable(errStatus, forbear.Hint{})
			}
			return err
		}) == nil
	}
}

// TestBudgetIsNoVerdict plays the load with which a spent budget, when it lowered
// the threshold of the breaker to 25 %, left 0.4 to 6.5 % of the calls of a
// dependency that fails 20 %, 0.2 to 0.5 % at 30 %, and, when chance opened the
// breaker, 1 to 3 % at 40 and 45 %, whatever the budget meant. Only R-7's SHOULD,
// taken literally, still does so.
func TestBudgetIsNoVerdict(t *testing.T) {
	load := partial.Load{Callers: 20, Think: 20 * time.Millisecond, For: 20 * time.Second, Seed: 1}
	for _, tt := range []struct {
		share       float64
		least       float64 // percent that succeed
		immediately float64 // percent, at most, of those whose spent budget opens the breaker
	}{{20, 94, 10}, {45, 64, 10}, {10, 99.9, 100}, {30, 82, 10}, {40, 70, 10}}[:ringtest.Size(2, 5)] {
		play := func(b breaker.Policy) partial.Result {
			p := forbear.Policy{Breaker: b}
			p.Backoff.Base = 50 * time.Millisecond
			return load.Run(t, byDo, partial.Random(tt.share/100), p)
		}
		signal, off := play(breaker.Policy{}), play(breaker.Policy{OnBudget: breaker.BudgetIgnored})
		opens, none := play(breaker.Policy{OnBudget: breaker.BudgetOpens}), play(breaker.Policy{Disabled: true})
		t.Logf("%2.0f %% of 503: %6.2f %% succeed by default, %6.2f %% with on_budget off, %6.2f %% with immediate, %6.2f %% without a breaker, at %.2f sends a call",
			tt.share, signal.Success(), off.Success(), opens.Success(), none.Success(), none.PerCall())
		for _, got := range []partial.Result{signal, off} {
			if got.Success() < none.Success()-2 || got.Success() < tt.least || got.PerCall() > 1.25 {
				t.Errorf("%v %%: %.2f %% succeed with %.3f sends a call, want %v %% and %.2f %% less 2 points",
					tt.share, got.Success(), got.PerCall(), tt.least, none.Success())
			}
		}
		if opens.Success() > tt.immediately {
			t.Errorf("%v %%: %.2f %% succeed though a spent budget opens the breaker: the load does not show what it is for", tt.share, opens.Success())
		}
	}
}
