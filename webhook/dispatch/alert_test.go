package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// alerting runs a dispatcher and an alerter that delivers by it.
func alerting(t *testing.T, s *memstore.Store, r http.RoundTripper, secret string) (*dispatch.Dispatcher, *queue.Alerter) {
	t.Helper()
	d := run(t, s, dispatch.Config{Transport: r})
	n, err := dispatch.NewNotifier(t.Context(), d, webhook.Endpoint{URL: "https://ops.example.com/", Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	a := queue.NewAlerter(s, quiet, n)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return d, a
}

// An alert arrives as a signed message, through an outage of its receiver that
// lasts longer than an alerter would hold on, and once.
func TestAlertsAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, down := webhook.NewSecret(), true
		var bodies []string
		r := &receiver{}
		r.respond = func(_ int, req *http.Request) int {
			if down {
				return 503
			}
			body, _ := io.ReadAll(req.Body)
			h := req.Header
			if err := webhook.Verify(secret, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), body, time.Now()); err != nil {
				t.Error(err)
			}
			bodies = append(bodies, string(body))
			return 200
		}
		s := &memstore.Store{}
		// Before the alerter runs: one that takes the alert in between leaves the rest of
		// them to a second one.
		for range 7 {
			if err := s.Raise(t.Context(), queue.Alert{Queue: "orders", Reason: "exhausted", Letter: "l1", Detail: "http_503"}); err != nil {
				t.Fatal(err)
			}
		}
		_, a := alerting(t, s, r, secret)
		time.Sleep(10 * time.Minute)
		if h := a.Health()[1]; h.Healthy || !strings.Contains(h.Error, "failing since") {
			t.Errorf("while the receiver is down: %+v", h)
		}
		r.mu.Lock()
		down = false
		r.mu.Unlock()
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		if len(bodies) != 1 {
			t.Fatalf("%d messages of one alert: %v", len(bodies), bodies)
		}
		var got struct {
			Type string
			Data queue.Alert
		}
		if err := json.Unmarshal([]byte(bodies[0]), &got); err != nil || got.Type != "forbear.alert" || got.Data.Queue != "orders" || got.Data.Count != 7 || got.Data.Letter != "l1" {
			t.Errorf("got %+v, %v", got, err)
		}
		if h := a.Health()[1]; !h.Healthy {
			t.Errorf("when it is well again: %+v", h)
		}
	})
}

// Alerts that cannot be delivered become letters in a queue of their own, and
// an alert about those is not sent the same way: one does not bring the next.
func TestAlertsDoNotBreedAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{respond: always(400)}
		s := &memstore.Store{}
		_, a := alerting(t, s, r, webhook.NewSecret())
		if err := s.Raise(t.Context(), queue.Alert{Queue: "orders", Reason: "exhausted"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		letters, _ := s.List(t.Context(), queue.Filter{})
		if len(letters) != 1 || letters[0].Queue != webhook.AlertQueue || letters[0].Destination != webhook.AlertEndpoint {
			t.Errorf("letters are %+v", letters)
		}
		if n := r.since(time.Time{}); n != 1 {
			t.Errorf("%d sends of one alert that is refused", n)
		}
		alerts, _ := s.AlertPage(t.Context(), 0, 10)
		if len(alerts) != 2 || !alerts[0].Done || alerts[0].Queue != webhook.AlertQueue {
			t.Errorf("alerts are %+v", alerts)
		}
		if h := a.Test(t.Context(), "ann")[1]; h.Healthy || !strings.Contains(h.Error, "http_400") {
			t.Errorf("the test button says %+v", h)
		}
	})
}

func TestAlertEndpointIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := run(t, &memstore.Store{}, dispatch.Config{Transport: &receiver{respond: always(200)}})
		for _, c := range []struct {
			name string
			e    webhook.Endpoint
			want error
		}{
			{"unsigned", webhook.Endpoint{URL: "https://ops.example.com/"}, webhook.ErrInvalid},
			{"an inner address", webhook.Endpoint{URL: "http://169.254.169.254/", Secrets: []string{webhook.NewSecret()}}, webhook.ErrBlocked},
			{"a secret that is not there", webhook.Endpoint{URL: "https://ops.example.com/", Secrets: []string{"env:NOBODY"}}, dispatch.ErrSecret},
		} {
			if _, err := dispatch.NewNotifier(t.Context(), d, c.e); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
		// The same endpoint at each start is the same version.
		e := webhook.Endpoint{URL: "https://ops.example.com/", Secrets: []string{webhook.NewSecret()}}
		for range 3 {
			if _, err := dispatch.NewNotifier(t.Context(), d, e); err != nil {
				t.Fatal(err)
			}
		}
		list, err := d.Endpoints(t.Context())
		if err != nil || len(list) != 1 || list[0].Version != 1 {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}
