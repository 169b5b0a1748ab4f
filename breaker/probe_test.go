package breaker_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// halfOpen returns a breaker whose probes are all under way, and when the latest
// was given.
func halfOpen(t *testing.T, p breaker.Policy) (b *breaker.Breaker, probes []breaker.Permit, now time.Time) {
	t.Helper()
	b, now = breaker.New(p, nil), time.Now()
	b.Force(breaker.Open, "test", now)
	b.Release()
	now = now.Add(b.Wait(now))
	for range p.Probes {
		probe, ok := b.Allow(now)
		if !ok || !probe.Probe {
			t.Fatalf("Allow = %+v, %v; want a probe", probe, ok)
		}
		probes = append(probes, probe)
	}
	if _, ok := b.Allow(now); ok {
		t.Fatalf("more than %d probes are let through", p.Probes)
	}
	return b, probes, now
}

// allowed counts the probes that b gives at one moment.
func allowed(b *breaker.Breaker, now time.Time) (probes []breaker.Permit) {
	for {
		probe, ok := b.Allow(now)
		if !ok || len(probes) > 100 {
			return probes
		}
		probes = append(probes, probe)
	}
}

// TestHungProbes: probes that never end must not hold a breaker half-open for
// ever. Their places are given again, as rarely as an open breaker probes.
func TestHungProbes(t *testing.T) {
	for _, tc := range []struct {
		name             string
		openFor, slow    time.Duration
		overdue, waiting time.Duration
	}{
		{"as long as it stays open", 30 * time.Second, 5 * time.Second, 30 * time.Second, time.Second},
		{"as long as a call may take", 5 * time.Second, 40 * time.Second, 40 * time.Second, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := breaker.Policy{OpenFor: tc.openFor}.WithDefaults(tc.slow)
			b, _, now := halfOpen(t, p)
			for round := range 3 {
				if got := b.Wait(now); got != tc.waiting {
					t.Errorf("round %d: Wait = %v just after the probes, want %v", round, got, tc.waiting)
				}
				early := now.Add(tc.overdue - time.Millisecond)
				if got := b.Wait(early); got != time.Millisecond {
					t.Errorf("round %d: Wait = %v just before they are overdue, want 1ms", round, got)
				}
				if probes := allowed(b, early); len(probes) > 0 {
					t.Fatalf("round %d: %d probes before the others are overdue", round, len(probes))
				}
				now = now.Add(tc.overdue)
				if got := b.Wait(now); got != 0 {
					t.Errorf("round %d: Wait = %v when the probes are overdue, want 0", round, got)
				}
				if probes := allowed(b, now); len(probes) != p.Probes {
					t.Fatalf("round %d: %d probes when the others are overdue, want %d", round, len(probes), p.Probes)
				}
			}
		})
	}
}

// TestHungProbeAmongGoodOnes: only the places of those still out are given again.
func TestHungProbeAmongGoodOnes(t *testing.T) {
	p := breaker.Policy{}.WithDefaults(time.Second)
	b, probes, now := halfOpen(t, p)
	for _, probe := range probes[2:] {
		b.Record(probe, breaker.Good, now)
	}
	now = now.Add(p.OpenFor)
	again := allowed(b, now)
	if len(again) != 2 {
		t.Fatalf("%d places are given again, want the 2 that are out", len(again))
	}
	b.Record(again[0], breaker.Good, now)
	b.Record(again[1], breaker.Good, now)
	if got := b.State(); got != breaker.Closed {
		t.Errorf("%v after as many good probes as the policy asks for, want closed", got)
	}
}

// TestOverdueProbesCount: the end of an overdue probe says as much of the
// dependency as any other's.
func TestOverdueProbesCount(t *testing.T) {
	p := breaker.Policy{}.WithDefaults(time.Second)
	b, probes, now := halfOpen(t, p)
	now = now.Add(p.OpenFor)
	if _, ok := b.Allow(now); !ok {
		t.Fatal("no probe when the others are overdue")
	}
	for _, probe := range probes[:3] {
		b.Record(probe, breaker.Good, now)
	}
	if again := allowed(b, now); len(again) != 2 {
		t.Errorf("%d more probes after 3 overdue successes, want the 2 that are needed", len(again))
	}
	b.Record(probes[3], breaker.Good, now)
	b.Record(probes[4], breaker.Good, now)
	if got := b.State(); got != breaker.Closed {
		t.Errorf("%v after 5 overdue successes, want closed", got)
	}

	b, probes, now = halfOpen(t, p)
	now = now.Add(p.OpenFor)
	if _, ok := b.Allow(now); !ok {
		t.Fatal("no probe when the others are overdue")
	}
	b.Record(probes[0], breaker.Failed, now)
	if got := b.State(); got != breaker.Open {
		t.Errorf("%v after an overdue probe failed, want open", got)
	}
}

// TestCanceledOverdueProbes: the place of an overdue probe has been given again, so
// that there is none to give back.
func TestCanceledOverdueProbes(t *testing.T) {
	p := breaker.Policy{}.WithDefaults(time.Second)
	b, probes, now := halfOpen(t, p)
	now = now.Add(p.OpenFor)
	again := allowed(b, now)
	for _, probe := range probes {
		b.Cancel(probe)
	}
	if more := allowed(b, now); len(again)+len(more) != p.Probes {
		t.Errorf("%d probes are under way after the overdue ones were canceled, want %d", len(again)+len(more), p.Probes)
	}
	for _, probe := range again {
		b.Cancel(probe)
	}
	if more := allowed(b, now); len(more) != p.Probes {
		t.Errorf("%d probes after all were canceled, want %d", len(more), p.Probes)
	}
}

// TestCanceledAfterOverdueSuccess: a probe that need not be made any more, since an
// overdue one succeeded in its place, gives nothing back.
func TestCanceledAfterOverdueSuccess(t *testing.T) {
	p := breaker.Policy{}.WithDefaults(time.Second)
	b, probes, now := halfOpen(t, p)
	now = now.Add(p.OpenFor)
	again := allowed(b, now)
	b.Record(probes[0], breaker.Good, now)
	for _, probe := range again {
		b.Cancel(probe)
	}
	if more := allowed(b, now); len(more) != p.Probes-1 {
		t.Errorf("%d probes after one success, want %d", len(more), p.Probes-1)
	}
}
