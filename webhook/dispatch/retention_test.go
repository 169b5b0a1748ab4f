package dispatch

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// The body goes first and the identity at the end; in between the message is known.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		d, err := New(Config{Store: s, Alerts: s, Retention: 8 * 24 * time.Hour, BodyRetention: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"}); err != nil {
			t.Fatal(err)
		}
		m := webhook.Message{ID: "m", Endpoints: []string{"a"}, Body: []byte(`"once"`)}
		other := m
		other.Body = []byte(`"other"`)
		offer := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			d.sweep(t.Context())
			a, err := d.Accept(t.Context(), m)
			if err != nil || a[0].Duplicate != want {
				t.Errorf("after %v: %+v, %v; want a duplicate: %v", after, a, err, want)
			}
			if _, err := d.Accept(t.Context(), other); !errors.Is(err, webhook.ErrConflict) {
				t.Errorf("after %v another one under the id: %v", after, err)
			}
		}
		offer(0, false)
		turn, err := s.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 1}}})
		if err != nil || len(turn.Claimed) != 1 {
			t.Fatalf("claimed %d, %v", len(turn.Claimed), err)
		}
		dl := turn.Claimed[0]
		if _, err := s.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{{ID: dl.ID, Fence: dl.Fence, Endpoint: "a", Kind: store.Delivered}}}); err != nil {
			t.Fatal(err)
		}
		offer(25*time.Hour, true)
		if n, err := s.DropBodies(t.Context(), time.Hour, 10); n != 0 || err != nil {
			t.Errorf("%d bodies were left, %v", n, err)
		}
		offer(6*24*time.Hour, true)
		offer(2*24*time.Hour, false)
	})
}

// No retention takes from an id what R-6 grants it.
func TestRetentionIsBounded(t *testing.T) {
	for _, tt := range []struct {
		history, bodies time.Duration
		want            string
	}{
		{24 * time.Hour, 0, "below 168h"},
		{0, time.Minute, "outside 1h0m0s to 168h"},
		{0, 200 * time.Hour, "outside 1h0m0s to 168h"},
		{300 * time.Hour, 200 * time.Hour, ""},
	} {
		_, err := New(Config{Store: &memstore.Store{}, Alerts: &memstore.Store{}, Retention: tt.history, BodyRetention: tt.bodies})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v, %v: got %v, want %q", tt.history, tt.bodies, err, tt.want)
		}
	}
}
