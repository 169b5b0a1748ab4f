package redisstore_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/redisstore"
)

const instances = 200

// load is a fleet of 200 Retryers, each with a budget and a Redis client of its
// own, that calls a dependency which answers 503 to everything.
type load struct {
	t        *testing.T
	url      string
	received atomic.Int64 // by the dependency
	initial  atomic.Int64 // calls begun
	budgets  []*budget.Fleet
	clients  []*http.Client
}

func newLoad(t *testing.T, s *server) *load {
	l := &load{t: t}
	dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.received.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(dead.Close)
	l.url = dead.URL
	network := &http.Transport{MaxIdleConnsPerHost: instances, MaxIdleConns: instances}
	t.Cleanup(network.CloseIdleConnections)
	policy := forbear.Policy{
		PerAttempt: 25 * time.Second, Total: 30 * time.Second, // on a busy machine each is slow
		Budget:  budget.Policy{Window: 5 * time.Minute}, // which is to hold all calls until they are counted
		Backoff: forbear.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond},
		Breaker: breaker.Policy{Disabled: true}, // it would stop all calls, and hide the budget
	}
	for range instances {
		store, err := redisstore.Open(s.url())
		if err != nil {
			t.Fatal(err)
		}
		b, err := budget.NewFleet(policy.Budget, store, "dead", budget.FleetOptions{
			Timeout: 250 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = b.Close()
			_ = store.Close()
		})
		r, err := forbear.New("dead", policy, forbear.WithBudget(b), forbear.WithoutLog())
		if err != nil {
			t.Fatal(err)
		}
		l.budgets = append(l.budgets, b)
		l.clients = append(l.clients, &http.Client{Transport: httpretry.NewTransport(network, r)})
	}
	return l
}

// run lets every instance make a call about every 200 ms, for d.
func (l *load) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range l.clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				l.call(c)
				time.Sleep(100*time.Millisecond + rand.N(200*time.Millisecond))
			}
		})
	}
	wg.Wait()
}

func (l *load) call(c *http.Client) {
	l.initial.Add(1)
	resp, err := c.Get(l.url)
	if err != nil {
		l.t.Errorf("the dependency was not reached: %v", err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// ratio returns what the dependency received for each call.
func (l *load) ratio() float64 {
	return float64(l.received.Load()) / float64(l.initial.Load())
}

// eventually waits for up to a minute until ok: the instances go on reporting,
// and on a machine with other work a report may come late, or time out.
func eventually(ok func() bool) {
	for range 1200 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (l *load) local() (n int) {
	for _, b := range l.budgets {
		if b.Stats().Local {
			n++
		}
	}
	return n
}

func TestFleetOf200OnADeadDependency(t *testing.T) {
	l := newLoad(t, startRedis(t))
	l.run(6 * time.Second)
	for n := 0; l.ratio() < 1.05 && n < 10; n++ { // a busy machine gets fewer calls done
		l.run(3 * time.Second)
	}
	t.Logf("%d received for %d calls: %.3f", l.received.Load(), l.initial.Load(), l.ratio())
	if r := l.ratio(); r > 1.25 {
		t.Errorf("the dependency received %.3f times the calls, want at most 1.25", r)
	} else if r < 1.05 {
		t.Errorf("the dependency received %.3f times the calls: hardly a retry, so this shows nothing", r)
	}
	var s budget.FleetStats
	eventually(func() bool {
		s = l.budgets[0].Stats()
		return s.Reading.Instances == instances && s.Reading.Initial >= l.initial.Load()*9/10
	})
	if s.Reading.Instances != instances || s.Reading.Initial < l.initial.Load()*9/10 {
		t.Errorf("the reading is %+v, want that of %d instances and %d calls", s.Reading, instances, l.initial.Load())
	}
}

func TestFleetOf200AcrossARestart(t *testing.T) {
	s := startRedis(t)
	l := newLoad(t, s)
	l.run(4 * time.Second)
	s.stop()
	l.run(2 * time.Second)
	eventually(func() bool { return l.local() == instances })
	if n := l.local(); n != instances {
		t.Errorf("%d instances noticed that Redis is gone, want %d", n, instances)
	}
	if err := s.launch(); err != nil { // empty
		t.Fatal(err)
	}
	l.run(5 * time.Second)
	t.Logf("%d received for %d calls: %.3f", l.received.Load(), l.initial.Load(), l.ratio())
	if r := l.ratio(); r >= 1.30 {
		t.Errorf("the dependency received %.3f times the calls, want less than 1.30", r)
	}
	eventually(func() bool { return l.local() == 0 })
	if n := l.local(); n > instances/10 {
		t.Errorf("%d instances did not find Redis again", n)
	}
	var st budget.FleetStats
	eventually(func() bool {
		st = l.budgets[0].Stats()
		return st.Reading.Initial >= l.initial.Load()*9/10
	})
	if st.Outages == 0 || st.Failed == 0 {
		t.Errorf("counted %+v, want the outage", st)
	}
	if st.Reading.Initial < l.initial.Load()*9/10 {
		t.Errorf("after the restart the fleet knows of %d calls, want nearly all %d", st.Reading.Initial, l.initial.Load())
	}
}
