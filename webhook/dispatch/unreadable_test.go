package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
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
		d, said := &Dispatcher{}, map[string]int{}
		for range 180 { // minutes
			for _, id := range []string{"a", "b"} {
				if d.seldom(id, unreadableAgain) {
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
		r.to.mu.Lock()
		r.to.tokens, r.to.refilled = 0, time.Now() // it has taken its one
		r.to.due = time.Time{}
		r.to.mu.Unlock()
		dl := r.job().delivery
		dl.Unreadable = errors.New("no key")
		r.d.hand(claim{of: []*receiver{r.to}, specs: []store.Lane{{Endpoint: "a", Max: 1}}}, &store.StepResult{Claimed: []store.Delivery{*dl}})
		if o := r.outcome(); o.Kind != store.Released || o.ID != 7 || o.Fence != 3 || o.After < unreadableFor || o.Attempt != nil {
			t.Errorf("the outcome is %+v", o)
		}
		if r.to.tokens != 1 || r.to.inFlight != 0 || len(r.to.buffer) != 0 || r.to.due.IsZero() {
			t.Errorf("%v tokens, %d in flight, %d in the buffer, due %v", r.to.tokens, r.to.inFlight, len(r.to.buffer), r.to.due)
		}
		if got := r.alerts(); len(got) != 1 || got[0] != "unreadable" {
			t.Errorf("alerts %v", got)
		}
	})
}

// sealing is a store some of whose endpoints cannot be read.
type sealing struct {
	*memstore.Store
	sealed map[string]bool
}

func (s *sealing) EndpointChanges(ctx context.Context, since int64) (store.EndpointChanges, error) {
	c, err := s.Store.EndpointChanges(ctx, since)
	c.Endpoints = slices.DeleteFunc(c.Endpoints, func(e webhook.Endpoint) bool {
		if s.sealed[e.ID] {
			u := webhook.Endpoint{ID: e.ID, Application: e.Application, State: e.State, Reason: e.Reason, Since: e.Since, Version: e.Version}
			if e.Tenant != nil {
				u.Tenant = &webhook.Application{ID: e.Application, Suspended: e.Tenant.Suspended, Reason: e.Tenant.Reason}
			}
			c.Unreadable = append(c.Unreadable, store.UnreadableEndpoint{Endpoint: u, Err: fmt.Errorf("endpoint %q %w: no key", e.ID, webhook.ErrUnreadable)})
		}
		return s.sealed[e.ID]
	})
	return c, err
}

// An endpoint whose configuration cannot be read keeps its lane, with the state that is
// stored, also when all are compared. What may be for one without a lane is refused for
// now; all others are served.
func TestUnreadableEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sealing{&memstore.Store{}, map[string]bool{}}
		d, err := New(Config{Store: s, Alerts: s.Store, Transport: status(200), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		put := func(id, application string, types ...string) {
			t.Helper()
			if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, Application: application, Types: types, URL: "https://example.com/"}); err != nil {
				t.Fatal(err)
			}
		}
		load := func() {
			t.Helper()
			if err := d.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"acme", "other"} {
			if _, err := s.PutApplication(t.Context(), webhook.Application{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		put("kept", "acme", "a.*")
		put("o", "other")
		put("new", "")
		s.sealed["new"] = true
		if err := d.Load(t.Context()); !errors.Is(err, webhook.ErrUnreadable) {
			t.Fatalf("the first load: %v", err)
		}
		s.sealed["new"] = false
		check(t, s.DeleteEndpoint(t.Context(), "new", 0))
		load()

		s.sealed["kept"], s.sealed["new"] = true, true
		put("kept", "acme", "b.*")
		put("new", "")
		accept := func(endpoint, application, kind string) error {
			m := webhook.Message{Application: application, Type: kind, Body: []byte("{}")}
			if endpoint != "" {
				m.Endpoints = []string{endpoint}
			}
			a, err := d.Accept(t.Context(), m)
			if err == nil && len(a[0].Endpoints) == 0 && application != "" {
				err = errors.New("it goes nowhere")
			}
			return err
		}
		for range 3 { // the third time all are compared
			load()
			check(t, accept("kept", "", ""))
			check(t, accept("", "other", "x"))
			for name, err := range map[string]error{"to it": accept("new", "", ""), "of what it wanted": accept("", "acme", "a.x"), "of what it wants": accept("", "acme", "b.x")} {
				if !errors.Is(err, webhook.ErrUnreadable) || errors.Is(err, webhook.ErrUnknownEndpoint) {
					t.Errorf("a message %s: %v", name, err)
				}
			}
			time.Sleep(compareEvery / 2)
		}
		if l := d.receiver("kept"); l == nil || !l.enabled() || !l.endpoint().conf.Subscribes("a.x") {
			t.Fatalf("its lane is %+v", l)
		}
		check(t, s.SetEndpointState(t.Context(), "kept", webhook.Disabled, webhook.ByOperator, "test", time.Time{}))
		if load(); d.receiver("kept").enabled() {
			t.Error("it is served though it is disabled")
		}
		check(t, s.SetEndpointState(t.Context(), "kept", webhook.Enabled, webhook.ByOperator, "", time.Time{}))
		if load(); !d.receiver("kept").enabled() {
			t.Error("it is not served though it is enabled")
		}
		s.sealed["kept"], s.sealed["new"] = false, false // as if it had been put by this process
		put("kept", "acme", "b.*")
		put("new", "")
		load()
		check(t, accept("new", "", ""))
		check(t, accept("", "acme", "b.x"))
		check(t, s.DeleteEndpoint(t.Context(), "new", 0))
		if load(); !errors.Is(accept("new", "", ""), webhook.ErrUnknownEndpoint) {
			t.Error("a deleted endpoint is not unknown")
		}
	})
}

// A configuration that no lane can be made of is not passed over by what its application
// is sent: whether it wants that is not known.
func TestUnservableEndpoint(t *testing.T) {
	s := &memstore.Store{}
	d, err := New(Config{Store: s, Alerts: s, Transport: status(200), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutApplication(t.Context(), webhook.Application{ID: "acme"}); err != nil {
		t.Fatal(err)
	}
	for id, url := range map[string]string{"good": "https://example.com/", "bad": "://"} {
		if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, Application: "acme", URL: url}); err != nil {
			t.Fatal(err)
		}
	}
	check(t, d.Load(t.Context()))
	if _, err := d.Accept(t.Context(), webhook.Message{Application: "acme", Body: []byte("{}")}); !errors.Is(err, webhook.ErrUnreadable) {
		t.Errorf("to the application: %v", err)
	}
	if _, err := d.Accept(t.Context(), webhook.Message{Endpoints: []string{"good"}, Body: []byte("{}")}); err != nil {
		t.Errorf("to its other endpoint: %v", err)
	}
}

// A store that was brought back from a backup gives the versions of what came after it
// again: what is stored counts.
func TestVersionsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fleet(t, 1)
		s := newStore(t, 0)
		if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "e0", URL: "https://other.example.com/"}); err != nil {
			t.Fatal(err)
		}
		d.cfg.Store = s
		time.Sleep(compareEvery)
		check(t, d.Load(t.Context()))
		if is := d.receiver("e0").config(); is.Version != 1 || is.URL != "https://other.example.com/" {
			t.Errorf("served are version %d and %s", is.Version, is.URL)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
