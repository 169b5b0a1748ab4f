package durable

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/webhook"
)

// comparer is a receiver that compares what it gets with what was sent: each payload has the
// id of its message.
type comparer struct {
	*httptest.Server
	mu    sync.Mutex
	seen  map[string]bool
	wrong []string
}

func newComparer(t *testing.T) *comparer {
	t.Helper()
	e := &comparer{seen: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Webhook-Id")
		body, err := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.seen[id] = true; err != nil || string(body) != payloadOf(id) {
			e.wrong = append(e.wrong, fmt.Sprintf("%s: %q, %v", id, body, err))
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func payloadOf(id string) string {
	return `{"of":"` + id + `","more":"` + strings.Repeat(id, 20) + `"}`
}

// missing returns how many of the ids have not arrived.
func (e *comparer) missing(ids []string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		if !e.seen[id] {
			n++
		}
	}
	return n
}

// insistent posts messages one after the other until it is stopped, and keeps the ids of those
// that were acknowledged. Others it sends again, as it was told to.
type insistent struct {
	mu    sync.Mutex
	acked []string
	last  time.Time // of the last one
	stop  chan struct{}
	ended sync.WaitGroup
}

func newInsistent(api string, n int) *insistent {
	c := &insistent{stop: make(chan struct{})}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for w := range n {
		c.ended.Go(func() {
			for i := 0; ; {
				select {
				case <-c.stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				id := fmt.Sprintf("f%d-%d", w, i)
				resp, err := client.Post(api+"/v1/messages", "application/json", strings.NewReader(`{"id":"`+id+`","endpoint":"a","payload":`+payloadOf(id)+`}`))
				if err != nil {
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode/100 != 2 {
					continue
				}
				i++
				c.mu.Lock()
				c.acked, c.last = append(c.acked, id), time.Now()
				c.mu.Unlock()
			}
		})
	}
	return c
}

// since waits until messages are acknowledged that were sent after a moment, and returns
// how long that took from then on.
func (c *insistent) since(t *testing.T, moment time.Time, what string) time.Duration {
	t.Helper()
	within(t, what, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.last.After(moment)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Sub(moment)
}

// within waits for a condition much longer than it takes.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after five minutes: %s", what)
		}
	}
}

// readiness waits until the database is said to be ready, or not.
func readiness(t *testing.T, s *Service, want bool) (state string) {
	t.Helper()
	within(t, fmt.Sprintf("ready is not %t", want), func() (is bool) {
		state, is = s.DB.Ready()
		return is == want
	})
	return state
}

// A failover as it happens, under load the whole time: the name leads to the standby while
// that is one, as happens where names move late, and back; then the primary dies and the
// standby is promoted, after the name leads there. Each time writes go on by themselves
// within seconds, readiness says how things are, and nothing that was acknowledged is lost
// or another.
func TestFailover(t *testing.T) {
	race.TooSlow(t, "TestPostgreSQLRestarts loses its server, too")
	primary := pgtest.Start(t, pgtest.Replicating...)
	database := primary.Database(t)
	standby := primary.Standby(t)
	relay := porttest.NewRelay(t, primary.Address())
	receiver := newComparer(t)
	s, stop := start(t, Options{Database: relay.URL(database)})
	s.DB.Watch(quiet)
	e := webhook.Endpoint{ID: "a", URL: receiver.URL, Concurrency: 50}
	put(t, s, e)
	api := httptest.NewServer(s.Handler)
	defer api.Close()
	began := time.Now()
	calls := newInsistent(api.URL, 4)
	calls.since(t, began, "no message is accepted")

	relay.Lead(standby.Address())
	relay.Cut()
	if got := readiness(t, s, false); got != "database: read-only" {
		t.Errorf("on the standby: %s", got)
	}
	back := time.Now()
	relay.Lead(primary.Address()) // what is open stays where it is
	t.Logf("the name leads to the primary again: the first success after %v", calls.since(t, back, "it stays on the standby").Round(time.Millisecond))
	readiness(t, s, true)
	t.Logf("ready after %v", time.Since(back).Round(time.Millisecond))

	primary.Halt(syscall.SIGQUIT)
	if got := readiness(t, s, false); got != "database: not reached" && got != "database: shutting down" {
		t.Errorf("without a server: %s", got)
	}
	relay.Lead(standby.Address())
	within(t, "it does not see the standby", func() bool { state, _ := s.DB.Ready(); return state == "database: read-only" })
	promoted := time.Now()
	standby.Promote(t)
	t.Logf("promoted: the first success after %v", calls.since(t, promoted, "no message is accepted by the one that was promoted").Round(time.Millisecond))
	readiness(t, s, true)
	t.Logf("ready after %v", time.Since(promoted).Round(time.Millisecond))

	close(calls.stop)
	calls.ended.Wait()
	within(t, "acknowledged messages have not arrived", func() bool { return receiver.missing(calls.acked) == 0 })
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if len(receiver.wrong) > 0 {
		t.Errorf("%d arrived otherwise than they were sent: %v", len(receiver.wrong), receiver.wrong[0])
	}
	t.Logf("%d messages were acknowledged, and all have arrived", len(calls.acked))
	stop()
}

// What waits in the outbox is delivered through a pooler that keeps a connection for its
// client, and messages are accepted.
func TestSessionPooler(t *testing.T) {
	through := pgtest.Bouncer(t, pgtest.Database(t), "session")
	receiver := newSink(t)
	s, stop := start(t, Options{Database: through})
	put(t, s, webhook.Endpoint{ID: "a", URL: receiver.URL})
	db := outside(t, through)
	ids := []string{"posted", "inserted"}
	if code, body := call(t, s, "POST", "/v1/messages", `{"id":"posted","endpoint":"a","payload":{}}`); code/100 != 2 {
		t.Errorf("got %d %v", code, body)
	}
	payload, _ := json.Marshal(map[string]int{"order": 4711})
	if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, type, body) VALUES ('inserted', 'a', 'order.shipped', $1)`, payload); err != nil {
		t.Fatal(err)
	}
	receiver.arrive(t, ids)
	stop()
}
