package dispatch

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// open opens the breaker; the next probe is due in wait.
func (r *rig) open(wait time.Duration) {
	r.to.endpoint().retryer.Breaker().Force(breaker.Open, "test", time.Now())
	r.to.holds[down].until = time.Now().Add(wait)
}

// hold fills a lane with deliveries, without workers.
func (r *rig) hold(inFlight, buffered int) {
	r.to.inFlight, r.to.buffer = inFlight, make([]*job, buffered)
}

// A receiver takes ahead what keeps a quick receiver busy, and nothing ahead of a
// slow one, or of one whose breaker has opened.
func TestReceiverDepth(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency time.Duration
		size    int // of the bodies that came
		open    bool
		want    int
	}{
		{"nothing known", 0, 0, false, 50},
		{"quick", 49 * time.Millisecond, 1 << 10, false, 50},
		{"not so quick", 50 * time.Millisecond, 256 << 10, false, 20},
		{"slow", 200 * time.Millisecond, 1 << 10, false, 10},
		{"quick, and down", time.Millisecond, 1 << 10, true, 10},
		{"quick, and large", time.Millisecond, 1 << 20, false, 18},
		{"not so quick, and large", 50 * time.Millisecond, 1 << 20, false, 18},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, status(200), webhook.Endpoint{})
			r.to.latency = c.latency
			body := make([]byte, c.size)
			r.to.inFlight = r.to.endpoint().slots() // what comes waits in the buffer
			for range 100 {
				r.to.take([]*store.Delivery{{Message: webhook.Message{Body: body}}}, 1)
			}
			if c.open {
				r.open(0)
			}
			if got := r.to.depth(); got != c.want {
				t.Errorf("%s: got %d, want %d of 10 slots", c.name, got, c.want)
			}
		})
	}
}

// A receiver asks for a claim when there is work, it is allowed, and enough of it is
// free; otherwise it says when to ask again.
func TestReceiverWants(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*rig)
		n      int
		next   time.Duration // 0: when something happens
	}{
		{"an idle lane", func(*rig) {}, 50, 0},
		{"no work is known of", func(r *rig) { r.to.due = time.Time{} }, 0, 0},
		{"the work is not due", func(r *rig) { r.to.due = time.Now().Add(time.Minute) }, 0, time.Minute},
		{"retries are refused", func(r *rig) { r.to.mayWait() }, 0, restraint},
		{"less than a quarter is free", func(r *rig) { r.hold(10, 29) }, 0, 0},
		{"a quarter is free", func(r *rig) { r.hold(10, 28) }, 12, 0},
		{"disabled", func(r *rig) { r.to.state.is = webhook.Disabled }, 0, 0},
		{"held, and a look is due", func(r *rig) { r.to.holds[credential].on = true }, 1, 0},
		{"held, and a look is under way", func(r *rig) { r.to.holds[credential].on = true; r.hold(1, 0) }, 0, 0},
		{"open, and a probe is due", func(r *rig) { r.open(0); r.to.failures = lifeless }, 1, 0},
		{"open, some come through, and probes are due", func(r *rig) { r.open(0) }, 5, 0},
		{"open, and a probe is not due", func(r *rig) { r.open(time.Minute) }, 0, time.Minute},
		{"open, and a probe is under way", func(r *rig) { r.open(0); r.hold(1, 0) }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(200), webhook.Endpoint{})
				c.change(r)
				n, next := r.to.want(time.Now())
				if n != c.n || next.IsZero() != (c.next == 0) || c.next > 0 && time.Until(next) != c.next {
					t.Errorf("wants %d, or later in %v; want %d, %v", n, time.Until(next), c.n, c.next)
				}
				if again, _ := r.to.want(time.Now()); n > 0 && again != 0 {
					t.Error("it wants once more before anything new is known")
				}
			})
		})
	}
}

// The rate of an endpoint is a tenth of a second's worth at once, and what was
// not claimed is not used up.
func TestReceiverKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{Rate: 100})
		l := r.to
		if n, _ := l.want(time.Now()); n != 10 {
			t.Fatalf("%d at first, want 10", n)
		}
		l.take(nil, 4) // six of the ten were there
		l.dueAt(time.Now())
		if n, _ := l.want(time.Now()); n != 4 {
			t.Errorf("%d after four went back, want those", n)
		}
		l.dueAt(time.Now())
		n, next := l.want(time.Now())
		if n != 0 || time.Until(next) != 10*time.Millisecond {
			t.Errorf("%d, or more in %v; want the next in a hundredth of a second", n, time.Until(next))
		}
		time.Sleep(time.Hour)
		if n, _ := l.want(time.Now()); n != 10 {
			t.Errorf("%d after an hour, want no more than 10", n)
		}
	})
}

// What is known of a receiver outlives a change of its endpoint, unless the
// endpoint is another receiver now. A hold for a credential stays in any case.
func TestReceiverOutlivesAChange(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(*webhook.Endpoint)
		knows, judges bool // the latency and the failures; the breaker and the budget
	}{
		{"a header", func(e *webhook.Endpoint) { e.Headers = []webhook.Header{{Name: "X-A", Value: "1"}} }, true, true},
		{"its policy", func(e *webhook.Endpoint) { e.Policy.MaxAttempts = 4 }, true, false},
		{"its concurrency", func(e *webhook.Endpoint) { e.Concurrency = 3 }, true, false},
		{"its address", func(e *webhook.Endpoint) { e.URL = "https://other.example.com/" }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(503), webhook.Endpoint{})
				for range 5 {
					r.process(r.job())
				}
				old := r.to.endpoint()
				r.to.latency, r.to.holds[credential].on, r.to.holds[down].on = time.Second, true, true
				e, err := r.store.Endpoint(t.Context(), "a")
				c.change(&e)
				if _, err2 := r.store.PutEndpoint(t.Context(), e); errors.Join(err, err2, r.d.Load(t.Context())) != nil {
					t.Fatal(err, err2)
				}
				l := r.d.receiver("a")
				if l != r.to || l.endpoint() == old {
					t.Fatal("the endpoint is the old one")
				}
				if knows := l.latency == time.Second && l.failures == 5; knows != c.knows {
					t.Errorf("latency %v and %d failures, kept %v", l.latency, l.failures, knows)
				}
				if judges := l.endpoint().retryer == old.retryer && l.holds[down].on; judges != c.judges {
					t.Errorf("breaker and budget kept %v", judges)
				}
				if !l.holds[credential].on {
					t.Error("the hold begins anew")
				}
			})
		})
	}
}

// A slot goes from one job to the next, those that were taken ahead in the order
// of the claim, and never more at once than there are slots.
func TestReceiverWorksInItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		flying, most := 0, 0
		r := newRig(t, respond(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Get("Webhook-Id"))
			flying++
			most = max(most, flying)
			time.Sleep(time.Second)
			flying--
			return status(200)(req)
		}), webhook.Endpoint{Concurrency: 1})
		var list []*store.Delivery
		for _, id := range []string{"1", "2", "3"} {
			dl := r.job().delivery
			dl.Message.ID = id
			list = append(list, dl)
		}
		r.to.take(list, 3)
		r.d.workers.Wait()
		if most != 1 || len(sent) != 3 || sent[0] != "1" || sent[1] != "2" || sent[2] != "3" || r.to.inFlight != 0 {
			t.Errorf("sent %v, %d at a time, %d still in flight", sent, most, r.to.inFlight)
		}
	})
}
