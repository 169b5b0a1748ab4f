package forbear_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
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

// first makes a first attempt and returns the State of one that failed.
func (d *durable) first(fails bool) (s *forbear.State, dec forbear.Decision) {
	d.r.Requested(d.now)
	d.firsts++
	return d.attempt(&forbear.State{}, fails)
}

func (d *durable) attempt(s *forbear.State, fails bool) (*forbear.State, forbear.Decision) {
	d.sends++
	if fails {
		return s, d.r.Next(s, refused, d.now)
	}
	d.good++
	d.r.Succeeded(s, 0, d.now)
	return s, forbear.Decision{}
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
				d.r.Succeeded(&forbear.State{}, 0, d.now)
			}
			d.now = d.now.Add(tt.later)
			got, share := 0, 0
			for range 200 {
				// A failure of a call that nobody counted: the share is the
				// floor of durable kinds at the most.
				switch dec := d.r.Reconsider(&forbear.State{}, refused, d.now); {
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
	d.r.Succeeded(&forbear.State{}, 0, d.now)
	for i := range 10 {
		dec := d.r.Reconsider(&forbear.State{}, refused, d.now)
		if !dec.Retry || dec.Paced != (i > 0) { // the first is the floor's
			t.Fatalf("retry %d: %+v", i, dec)
		}
		if i > 0 {
			d.r.Refund(dec, d.now)
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
			dec := d.r.Reconsider(&forbear.State{}, refused, d.now)
			if dec.Paced {
				back = append(back, dec)
			} else if !dec.Retry {
				break
			}
		}
		for _, dec := range back {
			d.r.Refund(dec, d.now)
		}
		return len(back)
	}
	for range 10 { // the share
		d.r.Reconsider(&forbear.State{}, refused, d.now)
	}
	if n := count(); n != 100 {
		t.Fatalf("%d earned", n)
	}
	fail := func(n int) {
		for range n {
			if _, dec := d.attempt(&forbear.State{}, true); dec.Paced {
				d.r.Refund(dec, d.now)
			}
		}
	}
	fail(32) // of the latest 64
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
	for share := 5; share <= 100; share += 5 {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(share), 3))
			d := newDurable(t, forbear.Webhook)
			d.r = quiet(t, forbear.Policy{Kind: forbear.Webhook, Breaker: breaker.Policy{Disabled: true}}, forbear.WithCallerDeadLetter())
			var waiting []*forbear.State
			done, dead := 0, 0
			ended := func(s *forbear.State, dec forbear.Decision) {
				switch {
				case dec == forbear.Decision{}:
					done++
				case dec.Retry, dec.Reason == forbear.ReasonBudget:
					waiting = append(waiting, s)
				default:
					dead++
				}
			}
			granted := map[*forbear.State]bool{}
			for range 20_000 {
				d.now = d.now.Add(10 * time.Millisecond)
				if s, dec := d.first(rng.IntN(100) < share); true {
					granted[s] = dec.Retry
					ended(s, dec)
				}
				for range min(len(waiting), 20) { // all that waits asks by turns
					s := waiting[0]
					waiting = waiting[1:]
					if !granted[s] && !d.r.Reconsider(s, refused, d.now).Retry {
						waiting = append(waiting, s)
						continue
					}
					s, dec := d.attempt(s, rng.IntN(100) < share)
					granted[s] = dec.Retry
					ended(s, dec)
				}
			}
			bound := float64(d.firsts)*1.2 + float64(d.good)
			t.Logf("%d sends of %d first attempts, %d good: %.2f of the bound; %d dead, %d wait", d.sends, d.firsts, d.good, float64(d.sends)/bound, dead, len(waiting))
			if float64(d.sends) > bound {
				t.Errorf("%d sends, want at most 1.2 x %d + %d", d.sends, d.firsts, d.good)
			}
			if share <= 45 && len(waiting) > 20 {
				t.Errorf("%d wait for a retry though most attempts succeed", len(waiting))
			}
		})
	}
}
