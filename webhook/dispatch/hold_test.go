package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// The waits between looks are drawn with full jitter from ceilings that double from
// 15 s up to a minute and a half, and begin anew with the next hold.
func TestHoldDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{}).to
		h := &r.holds[credential]
		for range 3 {
			seen := map[time.Duration]bool{}
			for i, ceiling := range []time.Duration{15, 30, 60, 90, 90, 90, 90} {
				ceiling *= time.Second
				began, counts := h.missing(credential, "why", time.Now())
				if began != (i == 0) || !counts {
					t.Fatalf("look %d: began %v, counts %v", i, began, counts)
				}
				wait := time.Until(h.until)
				if wait < 0 || wait > ceiling {
					t.Errorf("wait %d is %v, want at most %v", i, wait, ceiling)
				}
				if seen[wait] {
					t.Errorf("wait %d is %v once more: it is not spread", i, wait)
				}
				seen[wait] = true
				for time.Now().Before(h.until) {
					if n, next := r.may(time.Now(), 50); n != 0 || !next.Equal(h.until) {
						t.Fatalf("%d may be claimed while it waits, again at %v", n, next)
					}
					time.Sleep(time.Second)
				}
				if n, _ := r.may(time.Now(), 50); n != 1 {
					t.Errorf("%d probes", n)
				}
				r.inFlight = 1
				if n, next := r.may(time.Now(), 50); n != 0 || !next.IsZero() {
					t.Errorf("%d probes beside one, again at %v", n, next)
				}
				r.inFlight = 0
			}
			if !h.found(time.Now()) || h.found(time.Now()) {
				t.Error("the end is not reported once")
			}
			if n, _ := r.may(time.Now(), 50); n != 50 || r.blocked(time.Now()) {
				t.Errorf("%d of 50 after it ended", n)
			}
		}
	})
}

// Looks that were under way when one found the credential missing are not
// counted, whatever they find: the hold neither ends nor grows by them.
func TestHoldIgnoresOlderLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hold{}
		older := time.Now()
		time.Sleep(time.Millisecond)
		h.missing(credential, "why", time.Now())
		until := h.until
		if began, counts := h.missing(credential, "another", older); began || counts || h.until != until {
			t.Error("an older look that failed counts")
		}
		if h.found(older) || !h.waits(time.Now()) {
			t.Error("an older look that succeeded ends the hold")
		}
		time.Sleep(time.Hour)
		if h.found(older) {
			t.Error("it does so when the wait is over")
		}
		// A change of the endpoint: whatever is looked for from then on counts.
		h.missing(credential, "why", time.Now())
		if h.lookAgain(); !h.on || h.why != "" || h.waits(time.Now()) {
			t.Error("nothing is looked for after a change")
		}
		if began, counts := h.missing(credential, "still", time.Now()); began || !counts || h.why != "still" {
			t.Error("the hold began once more")
		}
	})
}
