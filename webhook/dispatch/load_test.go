package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// lateStore has one endpoint more for each reading, and takes its time to hand
// over the first list.
type lateStore struct {
	store.Store
	reads int
	first chan struct{}
}

func (s *lateStore) EndpointChanges(context.Context, int64) (store.EndpointChanges, error) {
	s.reads++
	if s.reads == 1 {
		<-s.first
		return store.EndpointChanges{}, nil
	}
	return store.EndpointChanges{Mark: 1, Endpoints: []webhook.Endpoint{{ID: "a", URL: "https://example.com/", State: webhook.Enabled, Version: 1}}}, nil
}

type noAlerts struct{}

func (noAlerts) Raise(context.Context, queue.Alert) error { return nil }

// A list of endpoints that was read before a change must not undo the change.
func TestLoadKeepsTheNewerList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{first: make(chan struct{})}
		d, err := New(Config{Store: s, Alerts: noAlerts{}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		go func() { done <- d.Load(t.Context()) }()
		synctest.Wait()
		go func() { done <- d.Load(t.Context()) }()
		synctest.Wait()
		close(s.first)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if d.receiver("a") == nil {
			t.Error("the endpoint is unknown again")
		}
	})
}

// newStore returns a store with endpoints e0, e1 ...
func newStore(tb testing.TB, n int) *memstore.Store {
	tb.Helper()
	s := &memstore.Store{}
	for i := range n {
		if _, err := s.PutEndpoint(tb.Context(), webhook.Endpoint{ID: fmt.Sprint("e", i), URL: "https://example.com/"}); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// Two dispatchers on one store, each changing what the other serves: both end up
// with what is stored, and by reading nothing twice.
func TestDispatchersAgree(t *testing.T) {
	s := newStore(t, 20)
	var list []*Dispatcher
	for range 2 {
		d, err := New(Config{Store: s, Alerts: s, Transport: status(200), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	var wg sync.WaitGroup
	for w := range 10 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 0))
			for i := range 100 {
				if err := change(t.Context(), list[rng.IntN(2)], s, fmt.Sprint("e", rng.IntN(25)), i, rng); err != nil && !errors.Is(err, webhook.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stored, err := s.Endpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range list {
		if err := d.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range d.receivers.all() {
			n++
		}
		if n != len(stored) {
			t.Errorf("dispatcher %d has %d lanes of %d endpoints", i, n, len(stored))
		}
		tenants := map[string]int{}
		for _, e := range stored {
			l := d.receiver(e.ID)
			if l == nil {
				t.Errorf("dispatcher %d does not know %s", i, e.ID)
				continue
			}
			if is := l.config(); is.Version != e.Version || is.State != e.State || is.URL != e.URL {
				t.Errorf("dispatcher %d: %s is %s in version %d, stored %s in %d", i, e.ID, is.State, is.Version, e.State, e.Version)
			}
			if e.Application != "" {
				tenants[e.Application]++
			}
		}
		for id, n := range tenants {
			if got := d.receivers.tenant(id); len(got) != n || !slices.IsSortedFunc(got, func(a, b *receiver) int { return strings.Compare(a.id, b.id) }) {
				t.Errorf("dispatcher %d: %d lanes of application %s, want %d", i, len(got), id, n)
			}
		}
	}
}

// change makes one change of an endpoint.
func change(ctx context.Context, d *Dispatcher, s *memstore.Store, id string, i int, rng *rand.Rand) (err error) {
	switch rng.IntN(6) {
	case 0:
		return d.Disable(ctx, id, "test")
	case 1:
		_, err = d.TestAndEnable(ctx, id, webhook.ByOperator)
		return err
	case 2:
		return s.DeleteEndpoint(ctx, id, 0)
	case 3:
		return s.SetEndpointState(ctx, id, webhook.Enabled, webhook.ByOperator, "", time.Now())
	}
	_, err = d.PutEndpoint(ctx, webhook.Endpoint{ID: id, URL: fmt.Sprint("https://example.com/", i)})
	return err
}

// Every few minutes all endpoints are read: what a store has lost, with the
// changes that said so, is dropped.
func TestLoadComparesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fleet(t, 3)
		d.cfg.Store = newStore(t, 2) // brought back from a backup
		for _, c := range []struct {
			after time.Duration
			known bool
		}{{0, true}, {compareEvery, false}} {
			time.Sleep(c.after)
			if err := d.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if known := d.receiver("e2") != nil; known != c.known {
				t.Errorf("after %v: known %v", c.after, known)
			}
		}
		if _, err := d.cfg.Store.PutEndpoint(t.Context(), webhook.Endpoint{ID: "new", URL: "https://example.com/"}); err != nil {
			t.Fatal(err)
		}
		if err := d.Load(t.Context()); err != nil || d.receiver("new") == nil {
			t.Errorf("a change after that is not read: %v", err)
		}
	})
}
