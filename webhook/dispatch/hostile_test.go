package dispatch_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/testkit/hostiletest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// Whatever a receiver does, an attempt ends in its time and is counted as what it was,
// the process stops, and no connection is kept.
func TestHostileReceivers(t *testing.T) { hostiletest.Each(t, holdDispatcher) }

func holdDispatcher(t *testing.T, servers []hostiletest.Server, plain *http.Transport) {
	guard := webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	transport := guard.Transport(time.Second)
	transport.DisableKeepAlives, transport.Protocols, transport.IdleConnTimeout = true, plain.Protocols, time.Second
	d := run(t, &memstore.Store{}, dispatch.Config{Guard: guard, Transport: transport})
	endpoint := func(t *testing.T, url string) string {
		id := webhook.NewID("e")
		if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: url, Policy: forbear.Policy{PerAttempt: 500 * time.Millisecond}}); err != nil {
			t.Error(err)
		}
		return id
	}
	deliver := func(body []byte) func(*testing.T) {
		return func(t *testing.T) {
			hostiletest.Hold(t, servers, func(t *testing.T, s hostiletest.Server, url string) int {
				e := endpoint(t, url)
				m := webhook.Message{ID: webhook.NewID("m"), Endpoints: []string{e}, Body: body}
				if _, err := d.Accept(t.Context(), m); err != nil {
					t.Error(err)
				}
				until(t, d, m.ID, func(i store.DeliveryInfo) bool { return i.Attempts > 0 })
				// What has begun ends, and there are no more.
				if err := d.SetState(t.Context(), e, webhook.Disabled, webhook.ByOperator, ""); err != nil {
					t.Error(err)
				}
				i := until(t, d, m.ID, func(i store.DeliveryInfo) bool { return i.State != store.StateSending })
				got := i.History[0]
				judge(t, s, got.Status, got.ErrorType)
				if (i.State == store.StateDelivered) != (got.Status/100 == 2) {
					t.Errorf("%s: %s after %d", s.Name, i.State, got.Status)
				}
				return i.Attempts
			})
		}
	}
	t.Run("deliveries", deliver([]byte("{}")))
	t.Run("deliveries without a payload", deliver(nil)) // which net/http would send again
	t.Run("tests of endpoints", func(t *testing.T) {
		hostiletest.Hold(t, servers, func(t *testing.T, s hostiletest.Server, url string) int {
			got, err := d.Test(t.Context(), endpoint(t, url), "", nil, webhook.ByOperator)
			if judge(t, s, got.Status, got.ErrorType); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			return 1
		})
	})
}

// judge compares what is recorded with what the server has said, which a busy machine may
// not come to in time.
func judge(t *testing.T, s hostiletest.Server, status int, errorType string) {
	if status != s.Status && errorType != errtype.Timeout || s.Stands && s.Status == 0 && errorType != errtype.Timeout {
		t.Errorf("%s: recorded with status %d, %s", s.Name, status, errorType)
	}
}

// until returns what is known of the one delivery of a message once that is so.
func until(t *testing.T, d *dispatch.Dispatcher, message string, so func(store.DeliveryInfo) bool) store.DeliveryInfo {
	for {
		list, err := d.Deliveries(t.Context(), message)
		if err != nil || t.Context().Err() != nil {
			t.Error(err)
			return store.DeliveryInfo{History: []deadletter.Attempt{{}}}
		}
		if so(list[0]) {
			return list[0]
		}
		time.Sleep(2 * time.Millisecond)
	}
}
