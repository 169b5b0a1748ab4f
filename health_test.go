package forbear_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/reason"
)

// gated is a policy whose health gate alone stands between retries and a
// dependency that is ill.
func gated() forbear.Policy {
	return forbear.Policy{Breaker: breaker.Policy{Disabled: true}, Health: health.Policy{MinSuccess: 0.5}}
}

// TestHealthGateFollowsItsAttempts kills a dependency and revives it: retries stop
// with the 20th attempt, first attempts never do, and retries come back with the
// success of those.
func TestHealthGateFollowsItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, gated(), forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))
		sends, dead := 0, true
		call := func() (sent int, err error) {
			before := sends
			err = r.Do(t.Context(), func(context.Context) error {
				if sends++; dead {
					return forbear.Retryable(errFlaky, forbear.Hint{})
				}
				return nil
			})
			return sends - before, err
		}
		for sends < 20 {
			if _, err := call(); err == nil {
				t.Fatal("a dead dependency did the work")
			}
		}
		for range 10 {
			if sent, err := call(); !errors.Is(err, forbear.ErrUnhealthy) || sent != 1 {
				t.Fatalf("behind the gate: %d sends, %v; want the first attempt alone", sent, err)
			}
		}
		dead = false
		for range 40 {
			if _, err := call(); err != nil {
				t.Fatal(err)
			}
		}
		dead = true
		if sent, err := call(); !errors.Is(err, forbear.ErrExhausted) || sent != 4 {
			t.Errorf("after the recovery: %d sends, %v; want all retries again", sent, err)
		}
	})
}

// TestHealthGatePutsDurableWorkOff holds that a gate neither ends work that
// survives a restart nor consumes its attempts, and that work which nothing else
// succeeds beside is not put off for ever: its window empties.
func TestHealthGatePutsDurableWorkOff(t *testing.T) {
	p := gated()
	p.Kind = forbear.Webhook
	r, now, ctx := quiet(t, p, forbear.WithCallerDeadLetter()), time.Now(), t.Context()
	for range 20 {
		c := edge.Durable(ctx, r, edge.Progress{})
		c.Ask(ctx, now)
		c.Fail(ctx, unavailable, 0, now)
	}
	c := edge.Durable(ctx, r, edge.Progress{})
	c.Ask(ctx, now)
	if d := c.Fail(ctx, unavailable, 0, now); d.Reason != reason.Unhealthy || c.Pending == nil || c.Attempts != 1 {
		t.Fatalf("got %s after %d attempts, pending %+v; want the decision put off", d.Reason, c.Attempts, c.Pending)
	}
	if d := c.Ask(ctx, now.Add(2*time.Minute)); !d.Retry {
		t.Errorf("after an idle window: %s, want a retry", d.Reason)
	}
}

func TestHealthGateAllocatesNothing(t *testing.T) {
	r, ctx := quiet(t, forbear.Policy{Health: health.Policy{MinSuccess: 0.5}}), requestContext(t)
	op := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(200, func() { _ = r.Do(ctx, op) }); n != 0 {
		t.Errorf("Do that succeeds at once: %v allocations, want 0", n)
	}
}

func TestHealthPolicyIsChecked(t *testing.T) {
	_, err := forbear.New("payments", forbear.Policy{Health: health.Policy{MinSuccess: 50}})
	if want := `policy "payments": health.min_success 50 is not a fraction: want 0 to 1, such as 0.2`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
