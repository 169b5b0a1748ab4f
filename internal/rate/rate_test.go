package rate

import (
	"fmt"
	"testing"
	"time"
)

// Buckets of names that have taken nothing for a while are forgotten, and those of
// others keep what was taken.
func TestBucketsAreForgotten(t *testing.T) {
	var l Limits
	now := time.Now()
	if wait := l.Take("busy", 10, 100, now); wait != 0 { // and owes 90: nine seconds' worth
		t.Fatalf("it waits %v", wait)
	}
	for i := range 20 * someBuckets {
		now = now.Add(time.Millisecond / 5)
		l.Take(fmt.Sprint("idle", i), 10, 1, now)
	}
	if n := len(l.buckets); n > 3*someBuckets {
		t.Errorf("%d buckets are kept", n)
	}
	if wait := l.Take("busy", 10, 1, now); wait < 4*time.Second {
		t.Errorf("after %v it owes nothing: it waits %v", 20*someBuckets*time.Millisecond/5, wait)
	}
}

// A rate of next to nothing lets through next to nothing.
func TestRatesOfNextToNothing(t *testing.T) {
	for _, r := range []float64{1e-6, 1e-10, 1e-300} {
		var l Limits
		now := time.Now()
		l.Take("a", r, 1, now)
		if wait := l.Take("a", r, 1, now); wait < 24*time.Hour {
			t.Errorf("at %g in a second the next waits %v", r, wait)
		}
	}
}

// What is asked for again and again is let through once in its time, though the sum of many
// small parts is not quite the whole.
func TestOnceInItsTime(t *testing.T) {
	var l Limits
	now, taken := time.Now(), 0
	for range 10 * 240 {
		if l.Take("a", 1.0/60, 1, now) == 0 {
			taken++
		}
		now = now.Add(250 * time.Millisecond)
	}
	if taken != 10 {
		t.Errorf("%d in ten minutes, want one a minute", taken)
	}
}
