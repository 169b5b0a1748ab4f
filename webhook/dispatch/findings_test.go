package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// fleet is a few dispatchers on one store, of which one is replaced now and then, and
// the receivers as each of them sees them.
type fleet struct {
	*testing.T
	store   store.Store
	alerts  dispatch.Alerter
	respond func(process int, r *http.Request) (*http.Response, error)

	mu       sync.Mutex
	sends    int
	accepted map[int]time.Time // the first since it was cleared, by place
	opened   map[breaker.Cause]int
	started  int
	list     []*dispatch.Dispatcher
	stops    []func()
}

// join starts a dispatcher in a place of the fleet.
func (f *fleet) join(place int) {
	f.Helper()
	process := f.started
	f.started++
	d, err := dispatch.New(dispatch.Config{
		Store: f.store, Alerts: f.alerts, Logger: quiet, Options: []forbear.Option{forbear.WithoutLog(), forbear.WithObserver(&forbear.Observer{BreakerMoved: f.moved})}, Poll: 2 * time.Second,
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			f.mu.Lock()
			f.sends++
			f.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			resp, err := f.respond(process, r)
			if err == nil && resp.StatusCode == 200 {
				f.mu.Lock()
				if f.accepted[place].IsZero() {
					f.accepted[place] = time.Now()
				}
				f.mu.Unlock()
			}
			return resp, err
		}),
		Lookup: func(ctx context.Context, _ string) error {
			_, err := f.respond(process, nil)
			return err
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	}
	if place < len(f.list) {
		f.stops[place]()
		f.list[place], f.stops[place] = d, stop
	} else {
		f.list, f.stops = append(f.list, d), append(f.stops, stop)
	}
	synctest.Wait()
}

// moved counts the openings of breakers by their causes.
func (f *fleet) moved(e breaker.Transition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.To == breaker.Open {
		f.opened[e.Cause]++
	}
}

// start starts three, with endpoint "a".
func (f *fleet) start(e webhook.Endpoint) {
	f.Helper()
	f.accepted, f.opened = map[int]time.Time{}, map[breaker.Cause]int{}
	for i := range 3 {
		f.join(i)
	}
	e.ID, e.URL = "a", "https://example.com/"
	if _, err := f.list[0].PutEndpoint(f.Context(), e); err != nil {
		f.Fatal(err)
	}
}

// stop stops all.
func (f *fleet) stop() {
	for _, stop := range f.stops {
		stop()
	}
}

// sent returns how many sends there were.
func (f *fleet) sent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sends
}

// One outage of one endpoint is one alert, whichever of three processes finds it, and
// however often they are replaced; all of them look hardly more often than one would,
// and when it is over all send again within seconds of the first that finds out.
func TestFleetKnowsWhatOneFinds(t *testing.T) {
	race.TooSlow(t, "hours of three processes; TestRateIsOfTheFleet has them, too")
	noName := func() (*http.Response, error) { return nil, errNoName }
	every := ringtest.Size(4*time.Second, time.Second) // a message
	status := func(code int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return responds(code), nil }
	}
	for _, c := range []struct {
		name    string
		down    func() (*http.Response, error)
		alert   string
		letters int64 // at most
		sends   int   // while it lasts, at most, in an hour
	}{
		// The fewer messages, the more often the same one is what it looks with.
		{"is down", status(503), "endpoint_slowed 1", ringtest.Size[int64](15, 5), 150},
		{"refuses everything", status(404), "endpoint_rejecting 1", 65, 65},
		{"has no name", noName, "endpoint_unresolved 1", 0, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &memstore.Store{}
				var down atomic.Bool
				f := &fleet{T: t, store: s, alerts: s, respond: func(int, *http.Request) (*http.Response, error) {
					if down.Load() {
						return c.down()
					}
					return responds(200), nil
				}}
				f.start(webhook.Endpoint{})
				defer f.stop()
				minutes := func(n int) {
					for minute := range n {
						for i := range int(time.Minute / every) {
							accept(t, f.list[i%3], 1)
							time.Sleep(every)
						}
						if minute%5 == 4 {
							f.join(minute / 5 % 3)
						}
					}
				}
				minutes(5)
				down.Store(true)
				before := f.sent()
				minutes(ringtest.Size(40, 60))
				sends := f.sent() - before
				down.Store(false)
				back := time.Now()
				f.mu.Lock()
				clear(f.accepted)
				f.mu.Unlock()
				for i := range int(25 * time.Minute / every) {
					accept(t, f.list[i%3], 1)
					time.Sleep(every)
				}
				found := slices.SortedFunc(maps.Values(f.accepted), time.Time.Compare)
				if len(found) < 3 {
					t.Fatalf("of three, %d send again", len(found))
				}
				first, all := found[0].Sub(back), found[2].Sub(found[0])
				alerts, letters := raised(t, s)
				t.Logf("%d sends, alerts %v, %d letters; found after %v, by all %v later", sends, alerts, letters, first.Round(time.Second), all.Round(time.Millisecond))
				if !slices.Equal(alerts, []string{c.alert}) || letters > c.letters || sends > c.sends {
					t.Errorf("want the alert %q, at most %d letters and %d sends", c.alert, c.letters, c.sends)
				}
				if first > 21*time.Minute || all > 2*time.Second+3*every { // each has a message to look with in three
					t.Errorf("found after %v, by all %v later", first, all)
				}
				// One opens by what it has seen itself, the others by its word; no one by hand.
				f.mu.Lock()
				o := maps.Clone(f.opened)
				f.mu.Unlock()
				if o[breaker.CauseOperator] > 0 || (o[breaker.CauseOtherProcess] > 0) != (c.name == "is down") {
					t.Errorf("breakers opened by %v", o)
				}
				if list, _, err := s.HoldChanges(t.Context(), 0); err != nil || len(list) > 0 {
					t.Errorf("%+v goes on, %v", list, err)
				}
			})
		})
	}
}

// A process that is cut off from a receiver holds no other up, and is not let loose by
// those that reach it: what it finds out is looked into by them and found untrue.
func TestProcessThatIsCutOff(t *testing.T) {
	cut := func(code int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return responds(code), nil }
	}
	for _, c := range []struct {
		name    string
		respond func() (*http.Response, error)
		letters int64 // at most: a process that is refused everything loses what it looks with
	}{
		{"503", cut(503), 3},
		{"403", cut(403), 60},
		{"no name", func() (*http.Response, error) { return nil, errNoName }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &memstore.Store{}
				arrived := map[string]time.Time{}
				f := &fleet{T: t, store: s, alerts: s}
				f.respond = func(process int, r *http.Request) (*http.Response, error) {
					if process == 0 {
						return c.respond()
					}
					if r != nil {
						f.mu.Lock()
						arrived[r.Header.Get("Webhook-Id")] = time.Now()
						f.mu.Unlock()
					}
					return responds(200), nil
				}
				f.start(webhook.Endpoint{})
				defer f.stop()
				sent := map[string]time.Time{}
				for i := range ringtest.Size(240, 360) { // one every ten seconds
					id := fmt.Sprint("m", i)
					sent[id] = time.Now()
					if _, err := f.list[i%3].Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte("{}")}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Second)
				}
				time.Sleep(ringtest.Size(time.Hour, 3*time.Hour))
				alerts, letters := raised(t, s)
				late, latest := 0, time.Duration(0)
				for id, at := range arrived {
					d := at.Sub(sent[id])
					latest = max(latest, d)
					if d > time.Minute {
						late++
					}
				}
				t.Logf("%d arrived, %d of them later than a minute, the last after %v; alerts %v, %d letters", len(arrived), late, latest.Round(time.Second), alerts, letters)
				if len(alerts) > 1 || letters > c.letters || len(arrived)+int(letters) != len(sent) || late > len(sent)/20 {
					t.Errorf("want all %d to arrive, soon, but for %d letters", len(sent), c.letters)
				}
			})
		})
	}
}

// deafStore takes nothing of what is found: it refuses it, or does not respond.
type deafStore struct {
	*memstore.Store
	hangs bool
}

var errDeaf = errors.New("the disk is full")

func (s *deafStore) PutHolds(ctx context.Context, _ string, _ []store.HoldWrite) error {
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errDeaf
}

// A store that takes nothing of what is found holds nothing up: each process finds out
// by itself, with its own alert.
func TestStoreThatSharesNothing(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint("hangs ", hangs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &deafStore{Store: &memstore.Store{}, hangs: hangs}
				var down atomic.Bool
				f := &fleet{T: t, store: s, alerts: s, respond: func(_ int, r *http.Request) (*http.Response, error) {
					if down.Load() && r.URL.Host == "example.com" {
						return responds(503), nil
					}
					return responds(200), nil
				}}
				f.start(webhook.Endpoint{})
				defer f.stop()
				if _, err := f.list[0].PutEndpoint(t.Context(), webhook.Endpoint{ID: "well", URL: "https://well.example.com/"}); err != nil {
					t.Fatal(err)
				}
				down.Store(true)
				n := ringtest.Size(150, 600)
				for i := range n {
					accept(t, f.list[i%3], 1)
					if _, err := f.list[i%3].Accept(t.Context(), webhook.Message{ID: fmt.Sprint("w", i), Endpoints: []string{"well"}, Body: []byte("{}")}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				time.Sleep(time.Second)
				for i := range n {
					if list, err := s.Deliveries(t.Context(), fmt.Sprint("w", i)); err != nil || list[0].State != "delivered" {
						t.Fatalf("w%d to the endpoint that is well: %+v, %v", i, list, err)
					}
				}
				down.Store(false)
				time.Sleep(30 * time.Minute)
				if alerts, letters := raised(t, s.Store); !slices.Equal(alerts, []string{"endpoint_slowed 3"}) || letters > 5 { // a probe may be a message's last attempt
					t.Errorf("alerts %v and %d letters, want one of each process", alerts, letters)
				}
			})
		})
	}
}

// countingStore counts the writes of what is found.
type countingStore struct {
	*memstore.Store
	writes, most atomic.Int64
}

func (s *countingStore) PutHolds(ctx context.Context, owner string, list []store.HoldWrite) error {
	s.writes.Add(1)
	s.most.Store(max(s.most.Load(), int64(len(list))))
	return s.Store.PutHolds(ctx, owner, list)
}

// Many endpoints that go down at a time are a few writes a second of a hundred
// each.
func TestManyGoDownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		many := ringtest.Size(300, 2000)
		s := &countingStore{Store: &memstore.Store{}}
		f := &fleet{T: t, store: s, alerts: s, respond: func(int, *http.Request) (*http.Response, error) { return responds(503), nil }}
		f.start(webhook.Endpoint{})
		defer f.stop()
		var msgs []webhook.Message
		for i := range many {
			id := fmt.Sprint("e", i)
			e := webhook.Endpoint{ID: id, URL: "https://" + id + ".example.com/"}
			e.Policy.Breaker.MinCalls = 4
			if _, err := s.PutEndpoint(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			for range 12 {
				msgs = append(msgs, webhook.Message{Endpoints: []string{id}, Body: []byte("{}")})
			}
		}
		time.Sleep(5 * time.Second)
		for len(msgs) > 0 {
			n := min(len(msgs), 1000)
			if _, err := f.list[0].Accept(t.Context(), msgs[:n]...); err != nil {
				t.Fatal(err)
			}
			msgs = msgs[n:]
		}
		began := time.Now()
		for held := 0; held < many; {
			time.Sleep(time.Second)
			list, _, err := s.HoldChanges(t.Context(), 0)
			if err != nil || time.Since(began) > 5*time.Minute {
				t.Fatalf("%d of %d are known to be down, %v", len(list), many, err)
			}
			held = len(list)
		}
		took := time.Since(began)
		a, letters := raised(t, s.Store)
		t.Logf("known after %v, %d writes, of %d at most; alerts %v", took, s.writes.Load(), s.most.Load(), a)
		if s.most.Load() > 100 || float64(s.writes.Load()) > 3*4*took.Seconds()+3 || letters > 0 || !slices.Equal(a, []string{fmt.Sprint("endpoint_slowed ", many)}) {
			t.Errorf("%d writes in %v, of %d at most; alerts %v", s.writes.Load(), took, s.most.Load(), a)
		}
	})
}
