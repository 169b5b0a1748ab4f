package durable

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// gates hold the attempts at each endpoint back until three processes have made one.
type gates struct {
	mu   sync.Mutex
	seen map[string]map[int]bool
	open map[string]chan struct{}
}

// pass waits for the others that send to the endpoint.
func (g *gates) pass(process int, r *http.Request) {
	id := r.URL.Path
	g.mu.Lock()
	if g.open[id] == nil {
		g.open[id], g.seen[id] = make(chan struct{}), map[int]bool{}
	}
	open, before := g.open[id], len(g.seen[id])
	if g.seen[id][process] = true; before == 2 && len(g.seen[id]) == 3 {
		close(open)
	}
	g.mu.Unlock()
	select {
	case <-open:
	case <-r.Context().Done():
	}
}

// Three processes on one database send to endpoints that are gone, and all of them hear
// so at the same moment: there is one alert for each endpoint, of the one whose write has
// disabled it.
func TestGoneIsOneAlertOfAFleet(t *testing.T) {
	t.Parallel()
	race.TooSlow(t, "webhook/dispatch has fleets, and sqlstore/sqltest their stores")
	t.Run("SQLite", func(t *testing.T) { oneAlertEach(t, filepath.Join(t.TempDir(), "forbear.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { oneAlertEach(t, pgtest.Database(t)) })
}

func oneAlertEach(t *testing.T, database string) {
	const endpoints, messages = 5, 30
	g := &gates{seen: map[string]map[int]bool{}, open: map[string]chan struct{}{}}
	var services [3]*Service
	var stops [3]func()
	for i := range services {
		services[i], stops[i] = start(t, Options{
			Database: database, Poll: 50 * time.Millisecond, Observers: []forbear.Option{forbear.WithoutLog()},
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) { g.pass(i, r); return answer(410), nil }),
		})
	}
	for i := range endpoints {
		id := fmt.Sprint("e", i)
		// So few at a time that one process does not take all.
		e := webhook.Endpoint{ID: id, URL: "https://example.com/" + id, Concurrency: 2}
		e.Policy.PerAttempt = time.Minute
		put(t, services[0], e)
		for range messages {
			send(t, services[0], webhook.Message{Endpoints: []string{id}})
		}
	}
	states := func() (disabled int) {
		list, err := services[0].Dispatcher.Endpoints(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.State == webhook.Disabled {
				disabled++
			}
		}
		return disabled
	}
	for began := time.Now(); states() < endpoints; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("%d of %d are disabled", states(), endpoints)
		}
	}
	for _, stop := range stops {
		stop() // with what they have still to store
	}
	s, stop := start(t, Options{Database: database, Observers: []forbear.Option{forbear.WithoutLog()}})
	defer stop()
	alerts, err := s.DB.DeadLetters().AlertPage(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range alerts {
		if a.Reason == store.AlertDisabled {
			n += a.Count
		}
	}
	if n != endpoints {
		t.Errorf("%d alerts that one of %d endpoints is disabled", n, endpoints)
	}
}
