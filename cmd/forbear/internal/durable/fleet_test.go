package durable

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

// Three processes on one database, one of which is replaced in the middle, and an
// endpoint that responds 404 to everything for a while: there is one alert, what is lost
// is hardly more than one process would lose, and when one finds it well all go on.
func TestOneOutageOfAFleet(t *testing.T) {
	t.Parallel()
	race.TooSlow(t, "webhook/dispatch has fleets, and sqlstore/sqltest their stores")
	t.Run("SQLite", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			oneOutage(t, filepath.Join(t.TempDir(), "forbear.db"), ringtest.Size(2*time.Second, 5*time.Second), 25*time.Minute, 60)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) { // its clock is its own
		oneOutage(t, pgtest.Database(t), 20*time.Millisecond, 2*time.Minute, 90)
	})
}

// oneOutage sends 300 messages, one in each unit of time, of which the first 30 are
// accepted, and then the endpoint is well again.
func oneOutage(t *testing.T, database string, unit, found time.Duration, lost int) {
	var mu sync.Mutex
	moved, starts := false, 0
	arrived, late := map[string]bool{}, map[int]int{} // late: attempts by those that started late
	receiver := func(process int) roundTrip {
		return guarded(&mu, func(r *http.Request) (*http.Response, error) {
			if moved {
				late[process]++
				return answer(404), nil
			}
			if id := r.Header.Get("Webhook-Id"); !strings.HasPrefix(id, "msg_test") {
				arrived[id] = true
			}
			return answer(200), nil
		})
	}
	begin := func() (*Service, func()) {
		starts++
		return start(t, Options{Database: database, Transport: receiver(starts), Observers: []forbear.Option{forbear.WithoutLog()}})
	}
	services, stops := [3]*Service{}, [3]func(){}
	for i := range services {
		services[i], stops[i] = begin()
	}
	put(t, services[0], webhook.Endpoint{ID: "a", URL: "https://example.com/"})
	time.Sleep(3 * time.Second)
	var ids []string
	offer := func(n int) {
		for range n {
			ids = append(ids, send(t, services[len(ids)%3], webhook.Message{ID: fmt.Sprint("m", len(ids)), Endpoints: []string{"a"}}))
			time.Sleep(unit)
		}
	}
	set := func(to bool) {
		mu.Lock()
		defer mu.Unlock()
		moved = to
	}
	offer(30)
	set(true)
	offer(200)
	stops[1]()
	services[1], stops[1] = begin()
	offer(70)
	set(false)
	back := time.Now()
	if res, err := services[0].Dispatcher.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || !res.OK {
		t.Errorf("got %+v, %v", res, err)
	}
	letters := func() int {
		n, err := services[0].DB.DeadLetters().Count(t.Context(), queue.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	var took time.Duration
	for {
		mu.Lock()
		n := len(arrived)
		mu.Unlock()
		if took = time.Since(back); n+letters() >= len(ids) || took > found {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	alerts, err := services[0].DB.DeadLetters().AlertPage(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	rejecting := 0
	for _, a := range alerts {
		if a.Reason == "endpoint_rejecting" {
			rejecting += a.Count
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("of %d messages %d are letters; %d alerts; attempts while it lasted, by process: %v; all done %v after it was over", len(ids), letters(), rejecting, late, took.Round(10*time.Millisecond))
	if rejecting != 1 || letters() > lost || len(arrived)+letters() != len(ids) {
		t.Errorf("%d alerts, %d letters and %d arrived of %d; want one alert and at most %d letters", rejecting, letters(), len(arrived), len(ids), lost)
	}
	if late[4] > 5 {
		t.Errorf("the process that started while it lasted found out by %d messages", late[4])
	}
	for _, stop := range stops {
		stop()
	}
}
