package dispatch_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// A pause of an endpoint loses nothing; one that has been disabled for longer than its
// messages live gets no more of them until it is enabled, and those that name it
// still come.
func TestAbandonedEndpointIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.PutApplication(t.Context(), webhook.Application{ID: "acme"}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b"} {
			if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/", Application: "acme"}); err != nil {
				t.Fatal(err)
			}
		}
		send := func(m webhook.Message, want string) {
			t.Helper()
			list, err := d.Accept(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(list[0].Endpoints, list[0].PassedOver); got != want {
				t.Errorf("%s goes to %s, want %s", m.ID, got, want)
			}
		}
		if err := d.Disable(t.Context(), "b", "a pause"); err != nil {
			t.Fatal(err)
		}
		send(webhook.Message{ID: "m1", Application: "acme"}, "[a b] []")
		time.Sleep(24 * time.Hour)
		send(webhook.Message{ID: "m2", Application: "acme"}, "[a b] []")
		time.Sleep(time.Second)
		send(webhook.Message{ID: "m3", Application: "acme"}, "[a] [b]")
		send(webhook.Message{ID: "m4", Endpoints: []string{"b"}}, "[] []")
		if list, err := d.Deliveries(t.Context(), "m4"); err != nil || len(list) != 1 {
			t.Errorf("m4, which names the endpoint: %+v, %v", list, err)
		}
		if err := s.SetEndpointState(t.Context(), "b", webhook.Enabled, webhook.ByOperator, "", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := d.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		send(webhook.Message{ID: "m5", Application: "acme"}, "[a b] []")
	})
}

// An application's rate lets its burst through, says when there is room again, and
// holds no other application up.
func TestApplicationKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		for id, rate := range map[string]float64{"acme": 10, "other": 0} {
			if _, err := d.PutApplication(t.Context(), webhook.Application{ID: id, Rate: rate}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: id + "-e", URL: "https://example.com/", Application: id}); err != nil {
				t.Fatal(err)
			}
		}
		accept := func(app string) error {
			_, err := d.Accept(t.Context(), webhook.Message{Application: app})
			return err
		}
		// Ten seconds of a caller who waits as long as it is told.
		taken, refused := 0, 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			err := accept("acme")
			if rate, ok := errors.AsType[*dispatch.RateError](err); ok {
				refused++
				time.Sleep(rate.RetryAfter)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			taken++
		}
		if taken < 108 || taken > 110 || refused == 0 {
			t.Errorf("%d were taken in 10 s at a rate of 10, and %d refused", taken, refused)
		}
		for range 100 {
			if err := accept("other"); err != nil {
				t.Fatal(err)
			}
		}
		list := make([]webhook.Message, 100)
		for i := range list {
			list[i].Application = "acme"
		}
		time.Sleep(time.Second)
		if _, err := d.Accept(t.Context(), list...); err != nil {
			t.Errorf("a call of more than a second's worth, to a full bucket: %v", err)
		}
		if err := accept("acme"); !errors.Is(err, dispatch.ErrRate) {
			t.Errorf("behind it: %v", err)
		}
	})
}

// What one process has stored counts in every other: a message is sent to the
// endpoints that there were when it was handed in, whichever process takes it.
func TestFanOutKnowsOtherProcesses(t *testing.T) {
	s := &memstore.Store{}
	one, other := dispatcher(t, s, &vault{}), dispatcher(t, s, &vault{})
	if _, err := one.PutApplication(t.Context(), webhook.Application{ID: "acme"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		id := fmt.Sprintf("e%03d", i%50)
		wg.Go(func() {
			list, err := other.Accept(t.Context(), webhook.Message{Application: "acme"})
			if err != nil || len(list) != 1 {
				t.Errorf("beside the changes: %+v, %v", list, err)
			}
		})
		if i < 50 {
			if _, err := one.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/", Application: "acme"}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := other.Accept(t.Context(), webhook.Message{Application: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(list[0].Endpoints, id) || len(list[0].Endpoints) != min(i+1, 50) {
			t.Fatalf("behind %s the message goes to %v", id, list[0].Endpoints)
		}
	}
	wg.Wait()
}
