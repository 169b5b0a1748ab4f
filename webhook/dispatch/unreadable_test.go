package dispatch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// What cannot be read is put off by a minute, and by more where there is so much of it
// that looking at it would keep others from being sent. It is said once an hour of each endpoint.
func TestUnreadableIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, start := &unreadable{}, time.Now()
		const n = 100_000
		for i := range n {
			wait := u.after(time.Now())
			if due := time.Since(start) + wait; wait < unreadableFor || due > unreadableFor+time.Duration(i)*unreadableGap {
				t.Fatalf("number %d waits %v", i, wait)
			}
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(time.Hour)
		if wait := u.after(time.Now()); wait != unreadableFor {
			t.Errorf("a single one waits %v", wait)
		}
		said := map[string]int{}
		for range 180 { // minutes
			for _, id := range []string{"a", "b"} {
				if u.say(id, time.Now()) {
					said[id]++
				}
			}
			time.Sleep(time.Minute)
		}
		if said["a"] != 3 || said["b"] != 3 {
			t.Errorf("said %v times in three hours", said)
		}
	})
}

// It takes neither a slot nor the rate of the endpoint's other messages, and makes no
// probe: the lane asks for the next one at once.
func TestUnreadableTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{Rate: 10})
		r.l.mu.Lock()
		r.l.tokens, r.l.refilled = 0, time.Now() // it has taken its one
		r.l.due = time.Time{}
		r.l.mu.Unlock()
		dl := r.job().delivery
		dl.Unreadable = errors.New("no key")
		r.d.hand(claim{lanes: []*lane{r.l}, specs: []webhook.Lane{{Endpoint: "a", Max: 1}}}, &webhook.StepResult{Claimed: []webhook.Delivery{*dl}})
		if o := r.outcome(); o.Kind != webhook.Released || o.ID != 7 || o.Fence != 3 || o.After < unreadableFor || o.Attempt != nil {
			t.Errorf("the outcome is %+v", o)
		}
		if r.l.tokens != 1 || r.l.inFlight != 0 || len(r.l.buffer) != 0 || r.l.due.IsZero() {
			t.Errorf("%v tokens, %d in flight, %d in the buffer, due %v", r.l.tokens, r.l.inFlight, len(r.l.buffer), r.l.due)
		}
		if got := r.alerts(); len(got) != 1 || got[0] != "unreadable" {
			t.Errorf("alerts %v", got)
		}
	})
}
