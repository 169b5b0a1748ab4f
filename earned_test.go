package forbear_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/reason"
)

// durable is work that is done by luck: its Retryer, and what was sent.
type durable struct {
	r                   *forbear.Retryer
	now                 time.Time
	firsts, sends, good int
}

func newDurable(t *testing.T, k forbear.Kind) *durable {
	t.Helper()
	p := forbear.Policy{Kind: k, Strict: true, Breaker: breaker.Policy{Disabled: true}}
	return &durable{r: quiet(t, p, forbear.WithCallerDeadLetter()), now: time.Now()}
}

var refused = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}

// first makes the first attempt of a call and returns it with what was decided.
func (d *durable) first(fails bool) (*edge.DurableCall, forbear.Decision) {
	d.firsts++
	return d.attempt(edge.Durable(context.Background(), d.r, edge.Progress{}), fails)
}

// attempt makes one attempt, without regard to any backoff.
func (d *durable) attempt(c *edge.DurableCall, fails bool) (*edge.DurableCall, forbear.Decision) {
	ctx := context.Background()
	for dec := c.Ask(ctx, d.now); dec.Wait > 0 || !dec.Retry; dec = c.Ask(ctx, d.now) {
		if !dec.Retry {
			return c, dec
		}
	}
	d.sends++
	if fails {
		return c, c.Fail(ctx, refused, 0, d.now)
	}
	d.good++
	c.Succeed(ctx, 0, d.now)
	return c, forbear.Decision{}
}

// uncounted is a call whose first attempt the budget does not know, so that its
// share stays at the floor of durable kinds.
func (d *durable) uncounted(p edge.Progress) *edge.DurableCall {
	p.State.Attempt, p.State.Start = 1, d.now
	return edge.Durable(context.Background(), d.r, p)
}

// reconsider asks about one failure whose retry was put off.
func (d *durable) reconsider() forbear.Decision {
	p := &edge.Pending{Class: refused.Class, Type: refused.Type, At: d.now}
	return d.uncounted(edge.Progress{Attempts: 1, Pending: p}).Ask(context.Background(), d.now)
}

// Each success earns two retries beyond the share, up to a hundred; a minute
// later they are gone, and calls that somebody waits for earn none.
func TestSuccessesEarnRetries(t *testing.T) {
	for kind, want := range map[forbear.Kind]int{
		forbear.Sync: 0, forbear.GRPC: 0, forbear.Event: 100, forbear.Webhook: 100, forbear.Batch: 100,
	} {
		for _, tt := range []struct {
			good, want int
			later      time.Duration
		}{{0, 0, 0}, {3, 6, 0}, {3, 6, time.Minute}, {3, 0, time.Minute + 1}, {500, 100, 0}} {
			d := newDurable(t, kind)
			for range tt.good {
				d.attempt(d.uncounted(edge.Progress{}), false)
			}
			d.now = d.now.Add(tt.later)
			got, share := 0, 0
			for range 200 {
				// The share is the floor of durable kinds at the most.
				switch dec := d.reconsider(); {
				case dec.Paced:
					got++
				case dec.Retry:
					share++
				}
			}
			if got != min(tt.want, want) || share > 1 {
				t.Errorf("%v, %d successes, %v later: %d retries beyond the share and %d in it, want %d", kind, tt.good, tt.later, got, share, min(tt.want, want))
			}
		}
	}
}

// A retry that is not made goes back to where it came from.
func TestPacedRetryGoesBack(t *testing.T) {
	d := newDurable(t, forbear.Webhook)
	d.attempt(d.uncounted(edge.Progress{}), false)
	for i := range 10 {
		dec := d.reconsider()
		if !dec.Retry || dec.Paced != (i > 0) { // the first is the floor's
			t.Fatalf("retry %d: %+v", i, dec)
		}
		if i > 0 {
			edge.Refund(d.r, dec, d.now)
		}
	}
}

// Most of the latest attempts fail: what was earned halves, and nothing more is.
func TestFailuresHalveWhatIsEarned(t *testing.T) {
	d := newDurable(t, forbear.Event)
	for range 50 {
		d.first(false)
	}
	count := func() (n int) {
		var back []forbear.Decision
		for {
			dec := d.reconsider()
			if dec.Paced {
				back = append(back, dec)
			} else if !dec.Retry {
				break
			}
		}
		for _, dec := range back {
			edge.Refund(d.r, dec, d.now)
		}
		return len(back)
	}
	for range 10 { // the share
		d.reconsider()
	}
	if n := count(); n != 100 {
		t.Fatalf("%d earned", n)
	}
	fail := func(n int) {
		for range n {
			if _, dec := d.attempt(d.uncounted(edge.Progress{}), true); dec.Paced {
				edge.Refund(d.r, dec, d.now)
			}
		}
	}
	fail(36) // of the latest 64, which chance may make of half of them
	if n := count(); n != 100 {
		t.Errorf("%d left before most had failed", n)
	}
	fail(1)
	if n := count(); n != 50 {
		t.Errorf("%d left when most had failed, want half", n)
	}
	fail(16)
	if n := count(); n != 25 {
		t.Errorf("%d left after 16 more, want half again", n)
	}
	for range 7 {
		d.first(false)
	}
	if n := count(); n != 25 {
		t.Errorf("%d after seven successes among failures, want nothing earned", n)
	}
	d.first(false) // the eighth in a row: it is well again
	if n := count(); n < 27 {
		t.Errorf("%d after eight successes in a row", n)
	}
}

// TestPaceIsBounded: whatever share fails, sends stay within 1.2 of the first
// attempts and what succeeds; where the dependency does most of what it is asked,
// they are all that the work needs.
func TestPaceIsBounded(t *testing.T) {
	moments, shares := ringtest.Size(2000, 20_000), []int{20, 45, 60, 95}
	if ringtest.Nightly() {
		shares = nil
		for share := 5; share <= 100; share += 5 {
			shares = append(shares, share)
		}
	}
	for _, share := range shares {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(share), 3))
			d := newDurable(t, forbear.Webhook)
			d.r = quiet(t, forbear.Policy{Kind: forbear.Webhook, Breaker: breaker.Policy{Disabled: true}}, forbear.WithCallerDeadLetter())
			var waiting []*edge.DurableCall
			done, dead, crowded := 0, 0, 0
			ended := func(c *edge.DurableCall, dec forbear.Decision) {
				switch {
				case dec == forbear.Decision{}:
					done++
				case dec.Retry, dec.Reason == reason.Budget:
					waiting = append(waiting, c)
				default:
					dead++
				}
			}
			for range moments {
				d.now = d.now.Add(10 * time.Millisecond)
				ended(d.first(rng.IntN(100) < share))
				for range min(len(waiting), 20) { // all that waits asks by turns
					c := waiting[0]
					waiting = waiting[1:]
					ended(d.attempt(c, rng.IntN(100) < share))
				}
				if len(waiting) > 20 {
					crowded++
				}
			}
			bound := float64(d.firsts)*1.2 + float64(d.good)
			t.Logf("%d sends of %d first attempts, %d good: %.2f of the bound; %d dead, %d wait, %d moments with more than 20", d.sends, d.firsts, d.good, float64(d.sends)/bound, dead, len(waiting), crowded)
			if float64(d.sends) > bound {
				t.Errorf("%d sends, want at most 1.2 x %d + %d", d.sends, d.firsts, d.good)
			}
			// A burst of failures may leave some waiting for a moment, and not for long.
			if share <= 45 && crowded > moments/20 {
				t.Errorf("more than 20 wait for a retry at %d of %d moments, though most attempts succeed", crowded, moments)
			}
		})
	}
}
