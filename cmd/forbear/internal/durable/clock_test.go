package durable

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// The clock of a PostgreSQL jumps by more than a day, for as long as something is written.
// The waits of the endpoint are seconds: what comes hours later is stranded. Each case has
// a database of its own, and they share the jump.
func TestDatabaseClockJumps(t *testing.T) {
	t.Parallel()
	server, set := pgtest.StartWithClock(t)
	for name, c := range map[string]struct {
		jump  time.Duration
		cases []clockCase
	}{
		"ahead": {jump, []clockCase{dayAhead, acceptedAhead, killedAhead, scheduledAhead, failedAhead}},
		"back":  {-jump, []clockCase{dayBack, acceptedBack}},
	} {
		t.Run(name, func(t *testing.T) {
			defer set(0)
			var all []clockSteps
			for _, test := range c.cases {
				url := server.Database(t)
				if err := migrate(url); err != nil {
					t.Fatal(err)
				}
				all = append(all, test(&clockRig{T: t, database: url, receiver: newFickle(t)}))
			}
			set(c.jump)
			for _, steps := range all {
				steps.during()
			}
			set(0)
			// The last refuse what they get until now: each refusal makes the next wait longer.
			for _, steps := range slices.Backward(all) {
				steps.then()
			}
			for _, steps := range all {
				steps.check()
			}
		})
	}
}

const jump = 30 * time.Hour

// clockCase begins a case and returns its steps.
type clockCase func(*clockRig) clockSteps

// clockSteps are what a case does while the clock is wrong, as soon as it is right, and to
// see what came of it.
type clockSteps struct{ during, then, check func() }

type clockRig struct {
	*testing.T
	database string
	receiver *fickle
}

// fickle is a receiver that compares what it gets with what was sent, and refuses it or
// lets it wait as it is told.
type fickle struct {
	*httptest.Server
	mu      sync.Mutex
	refuses bool
	waits   chan struct{} // nil: does not
	tries   map[string]int
	taken   map[string]bool
	wrong   []string
}

func newFickle(t *testing.T) *fickle {
	f := &fickle{tries: map[string]int{}, taken: map[string]bool{}}
	f.Server = httptest.NewServer(f)
	f.Config.Handler = f
	t.Cleanup(f.Close)
	return f
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Webhook-Id")
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.tries[id]++
	refuses, waits := f.refuses, f.waits
	if string(body) != payloadOf(id) {
		f.wrong = append(f.wrong, fmt.Sprintf("%s: %q", id, body))
	}
	f.taken[id] = f.taken[id] || !refuses && waits == nil
	f.mu.Unlock()
	if waits != nil {
		select {
		case <-waits:
		case <-r.Context().Done():
		}
	}
	if refuses || waits != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// does sets what the receiver does from now on.
func (f *fickle) does(refuses bool, waits chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses, f.waits = refuses, waits
}

// tried reports whether each of them was sent.
func (f *fickle) tried(ids ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool { return f.tries[id] == 0 })
}

// arrive waits until all have arrived as they were sent.
func (f *fickle) arrive(t *testing.T, ids ...string) {
	t.Helper()
	within(t, "not all messages have arrived", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !slices.ContainsFunc(ids, func(id string) bool { return !f.taken[id] })
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.wrong) > 0 {
		t.Errorf("other contents: %q", f.wrong)
	}
}

// endpoint is one that is tried again after seconds.
func (r *clockRig) endpoint() webhook.Endpoint {
	e := webhook.Endpoint{ID: "a", URL: r.receiver.URL}
	e.Policy.Backoff.Schedule = []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second, 50 * time.Second}
	e.Policy.MaxAttempts = 8
	return e
}

// idle is a service that accepts and sends nothing.
func (r *clockRig) idle() *Service {
	s, err := New(r.Context(), Options{Database: r.database, Allow: thisMachine, Logger: quiet})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = s.Close() })
	return s
}

func (r *clockRig) running() *Service {
	s, _ := start(r.T, Options{Database: r.database})
	return s
}

// sends sends messages for a time, or for now.
func (r *clockRig) sends(s *Service, n int, name string, in time.Duration) (ids []string) {
	r.Helper()
	for i := range n {
		m := webhook.Message{ID: fmt.Sprint(name, i), Endpoints: []string{"a"}}
		m.Body = []byte(payloadOf(m.ID))
		if in > 0 {
			m.NotBefore = time.Now().Add(in)
		}
		ids = append(ids, send(r.T, s, m))
	}
	return ids
}

// info is what the store has of a message.
func (r *clockRig) info(s *Service, id string) store.DeliveryInfo {
	r.Helper()
	list, err := s.DB.Webhooks().Deliveries(r.Context(), id)
	if err != nil || len(list) != 1 {
		r.Fatalf("%s: %+v, %v", id, list, err)
	}
	return list[0]
}

// lookedAt waits until messages were claimed and wait again.
func (r *clockRig) lookedAt(s *Service, ids ...string) {
	r.Helper()
	within(r.T, "messages were not claimed and given back", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool {
			i := r.info(s, id)
			return i.Claims == 0 || i.State != store.StateWaiting
		})
	})
}

func dayAhead(r *clockRig) clockSteps {
	s := r.running()
	put(r.T, s, r.endpoint())
	set := func(state webhook.EndpointState) {
		if err := s.Dispatcher.SetState(r.Context(), "a", state, webhook.ByOperator, ""); err != nil {
			r.Fatal(err)
		}
	}
	set(webhook.Disabled)
	ids := r.sends(s, 5, "m", 0)
	return clockSteps{func() {
		// All are older than their 24 hours, by the store's clock, and a second look finds them
		// where the first has put them.
		within(r.T, "messages were not looked at twice", func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool { return r.info(s, id).Claims < 2 })
		})
	}, func() { set(webhook.Enabled) }, func() {
		if n, err := s.DB.DeadLetters().Count(r.Context(), queue.Filter{}); n != 0 || err != nil {
			r.Errorf("%d dead letters, %v", n, err)
		}
		r.receiver.arrive(r.T, ids...)
	}}
}

func acceptedAhead(r *clockRig) clockSteps {
	s := r.idle()
	put(r.T, s, r.endpoint())
	scheduled := r.sends(s, 3, "early", 2*jump)
	var ids []string
	return clockSteps{func() {
		ids = r.sends(s, 20, "m", 0)
		scheduled = append(scheduled, r.sends(s, 3, "late", 2*jump)...)
	}, func() { s = r.running() }, func() {
		r.receiver.arrive(r.T, ids...)
		for _, id := range scheduled {
			in := time.Duration(0)
			within(r.T, "the due time is not that of the schedule", func() bool {
				in = time.Until(r.info(s, id).Due)
				return in < 2*jump+time.Minute
			})
			if in < 2*jump-10*time.Minute || r.receiver.tried(id) {
				r.Errorf("%s is due in %v, and tried: %v", id, in, r.receiver.tried(id))
			}
		}
	}}
}

func failedAhead(r *clockRig) clockSteps {
	s := r.running()
	put(r.T, s, r.endpoint())
	r.receiver.does(true, nil)
	var ids []string
	return clockSteps{func() {
		ids = r.sends(s, 10, "m", 0)
		within(r.T, "attempts are not written back", func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool { return r.info(s, id).Attempts == 0 })
		})
	}, func() { r.receiver.does(false, nil) }, func() { r.receiver.arrive(r.T, ids...) }}
}

func killedAhead(r *clockRig) clockSteps {
	s := r.idle()
	put(r.T, s, r.endpoint())
	waits := make(chan struct{})
	r.receiver.does(false, waits)
	var ids []string
	return clockSteps{func() {
		ids = r.sends(s, 5, "m", 0)
		first := spawn(r.T, r.database, "")
		first.ready(r.T)
		within(r.T, "no attempt begins", func() bool { return r.receiver.tried(ids...) })
		first.kill()
		r.receiver.does(false, nil)
		close(waits)
	}, func() { spawn(r.T, r.database, "").ready(r.T) }, func() {
		r.receiver.arrive(r.T, ids...)
		if i := r.info(s, ids[0]); i.History[0].ErrorType != "interrupted" {
			r.Errorf("the history is %+v", i.History)
		}
	}}
}

func scheduledAhead(r *clockRig) clockSteps {
	s := r.running()
	put(r.T, s, r.endpoint())
	later := r.sends(s, 5, "later", jump/2)
	var ids []string
	return clockSteps{func() { r.lookedAt(s, later...) }, func() { ids = r.sends(s, 5, "m", 0) }, func() {
		r.receiver.arrive(r.T, ids...)
		for _, id := range later {
			within(r.T, "a scheduled message is stranded", func() bool { return time.Until(r.info(s, id).Due) < jump/2+time.Minute })
		}
		r.notTried(later...)
	}}
}

func acceptedBack(r *clockRig) clockSteps {
	s := r.running()
	put(r.T, s, r.endpoint())
	r.receiver.does(true, nil)
	var later, ids []string
	return clockSteps{func() {
		later, ids = r.sends(s, 5, "later", jump/2), r.sends(s, 10, "m", 0)
		within(r.T, "no attempt begins", func() bool { return r.receiver.tried(ids...) })
	}, func() { r.receiver.does(false, nil) }, func() {
		r.receiver.arrive(r.T, ids...)
		r.lookedAt(s, later...) // they are due by then, by the store's clock
		r.notTried(later...)
	}}
}

func dayBack(r *clockRig) clockSteps {
	s := r.idle()
	put(r.T, s, r.endpoint())
	var ids []string
	return clockSteps{
		func() { ids = r.sends(s, 10, "m", 0) },
		func() { r.running() }, // by the store's clock they have waited for longer than they may
		func() { r.receiver.arrive(r.T, ids...) },
	}
}

// notTried fails for what is scheduled and was sent.
func (r *clockRig) notTried(ids ...string) {
	r.Helper()
	for _, id := range ids {
		if r.receiver.tried(id) {
			r.Errorf("%s was sent before its time", id)
		}
	}
}
