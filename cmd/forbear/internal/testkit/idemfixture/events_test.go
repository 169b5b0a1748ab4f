package idemfixture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/promretry"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/prometheus/client_golang/prometheus"
)

// TestEventVectors runs the scenarios of events over package consume, on every
// store that there is, and scenarios of our own, which need every step and
// every modifier. The waits of a day take no time: each scenario runs in a
// bubble, databases and all.
func TestEventVectors(t *testing.T) {
	runEvents(t, slices.Concat(scenarios(t).Events, more(t, "events.json").Events))
}

func runEvents(t *testing.T, list []eventScenario) {
	if len(list) == 0 {
		t.Fatal("no scenarios")
	}
	for _, store := range []string{"memory", "sqlite", "postgres", "redis"} {
		t.Run(store, func(t *testing.T) {
			for _, s := range list {
				s.Stores.check(t, s.ID)
				if len(s.Stores) > 0 && !slices.Contains(s.Stores, store) {
					continue
				}
				t.Run(s.ID, func(t *testing.T) {
					t.Log(s.Name)
					place := filepath.Join(t.TempDir(), "forbear.db")
					if store == "postgres" {
						place = pgtest.Database(t)
					}
					redis := ""
					if store == "redis" {
						redis = redistest.Database(t)
					}
					synctest.Test(t, func(t *testing.T) {
						w := newEventWorld(t, store, place, redis)
						if crashes(s.Steps) && (store == "postgres" || store == "redis") {
							w.options.Lease = 2 * time.Second // of the server's own clock, which is not the bubble's
						}
						for i := range s.Steps {
							w.step(&s.Steps[i])
						}
						w.wait()
						w.check(&s.Expect)
					})
				})
			}
		})
	}
}

// crashes reports whether a scenario has a consumer die, whose lease somebody
// must wait for.
func crashes(steps []eventStep) bool {
	return slices.ContainsFunc(steps, func(s eventStep) bool { return s.Crash != "" })
}

// eventWorld is a broker, the consumers' processes, and their store.
type eventWorld struct {
	*broker
	store string
	place string // of the database

	redis string // its database

	db   *database.DB
	keys idempotency.Store
	dlq  switched

	mu        sync.Mutex
	options   consume.Options
	retries   int
	consumers map[string]*consume.Consumer
	registry  *prometheus.Registry
	metrics   *promretry.Metrics

	published map[string]consume.Event
	alerted   atomic.Int64
	redriven  []time.Time
}

func newEventWorld(t *testing.T, store, place, redis string) *eventWorld {
	db, err := database.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &eventWorld{
		broker: newBroker(t), store: store, place: place, db: db, keys: db.Idempotency(), dlq: switched{Store: db.DeadLetters()},
		consumers: map[string]*consume.Consumer{}, registry: prometheus.NewRegistry(), metrics: promretry.New(), published: map[string]consume.Event{},
	}
	switch store {
	case "memory":
		w.keys = &memstore.Idempotency{}
	case "redis": // the letters are in SQLite
		w.redis, w.keys = redis, openRedis(t, redis)
	}
	w.registry.MustRegister(w.metrics)
	w.consume = w.consumer
	return w
}

// switched is a dead-letter queue that can be down.
type switched struct {
	queue.Store
	mu   sync.Mutex
	down bool
}

func (s *switched) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *switched) Put(ctx context.Context, l deadletter.Letter) error {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down || died(ctx) {
		return errors.New("the queue is down")
	}
	return s.Store.Put(ctx, l)
}

// consumer returns a process's consumer of a group.
func (w *eventWorld) consumer(group string, process int) *consume.Consumer {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprint(group, process)
	if c := w.consumers[name]; c != nil {
		return c
	}
	c, err := w.build(group, w.options)
	if err != nil {
		w.t.Errorf("consumer: %v", err)
		panic(err)
	}
	w.consumers[name] = c
	return c
}

func (w *eventWorld) build(group string, o consume.Options) (*consume.Consumer, error) {
	retryer, err := forbear.New("orders", forbear.Policy{Kind: forbear.Event, MaxRetries: w.retries},
		forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithObserver(w.metrics.Observer()))
	if err != nil {
		return nil, err
	}
	o.Group, o.Store, o.DLQ, o.Retryer = group, outlived{w.keys}, &w.dlq, retryer
	return consume.New(w.handle, o)
}

const defaultGroup = "orders"

func (w *eventWorld) step(s *eventStep) {
	t := w.t
	t.Helper()
	known(t, s.Handler)
	group := s.Group
	if group == "" {
		group = defaultGroup
	}
	switch s.verb {
	case "deliver":
		e := s.event()
		w.published[e.ID] = e
		for i := range max(s.Parallel, 1) {
			w.publish(&message{event: e, group: group, handler: s.Handler, crash: s.Crash, consumer: i})
		}
	case "deliver_raw":
		w.raw(s, group)
	case "deliver_many":
		for i := range s.DeliverMany {
			e := (&eventJSON{ID: fmt.Sprint("many-", i), Source: "/orders", Type: "order.created", Data: []byte(`{"n":1}`)}).event()
			w.publish(&message{event: e, group: group, handler: s.Handler})
		}
	case "redeliver":
		m := w.find(s.Redeliver)
		if s.Handler != "" {
			m.handler = s.Handler
		}
		m.crash = s.Crash
		for range max(s.Parallel, 1) {
			w.again(m)
		}
	case "restart":
		w.restart()
	case "advance":
		w.advance(time.Duration(s.Advance))
	case "sweep":
		if _, err := w.keys.Sweep(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
	case "configure":
		w.configure(s)
	case "handler":
		w.broker.mu.Lock()
		w.handler = s.Handler
		w.broker.mu.Unlock()
	case "dlq":
		if s.DLQ != "up" && s.DLQ != "down" {
			t.Fatalf("dlq %q is not understood", s.DLQ)
		}
		w.dlq.set(s.DLQ == "down")
	case "fill_dlq":
		w.fill(group, s.FillDLQ)
	case "redrive":
		w.redrive(s)
	default:
		t.Fatalf("step %q is not understood", s.verb)
	}
	synctest.Wait()
}

// event returns the event of a step, with its modifiers.
func (s *eventStep) event() consume.Event {
	e := s.Deliver.event()
	if s.Key != "" {
		e.Key = s.Key
	}
	for name, v := range s.Headers {
		e.Headers = append(e.Headers, deadletter.Header{Name: name, Value: v})
	}
	return e
}

func (j *eventJSON) event() consume.Event {
	return consume.Event{ID: j.ID, Source: j.Source, Type: j.Type, Subject: j.Subject, Key: j.Key, Data: j.Data, ContentType: "application/json"}
}

// raw delivers bytes that may be no event, as a sender of CloudEvents would.
func (w *eventWorld) raw(s *eventStep, group string) {
	body := string(s.DeliverRaw)
	var text string
	if vectors.Decode(s.DeliverRaw, &text) == nil {
		body = text
	}
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	for name, v := range s.Headers {
		r.Header.Set(name, v)
	}
	m := &message{handler: s.Handler}
	answer := httptest.NewRecorder()
	consume.CloudEvents(w.consumer(group, 0)).ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), processKey{}, &process{message: m})))
	if answer.Code == http.StatusNoContent {
		w.broker.mu.Lock()
		w.acks++
		w.broker.mu.Unlock()
	}
}

// restart is the end of all processes and the start of new ones, to which the
// broker gives again what was not acknowledged.
func (w *eventWorld) restart() {
	w.mu.Lock()
	clear(w.consumers)
	w.mu.Unlock()
	for _, m := range w.unacknowledged() {
		w.again(m)
	}
}

// advance lets time pass. A server's own clock cannot be moved, so that what is
// stored there grows older.
func (w *eventWorld) advance(by time.Duration) {
	switch w.store {
	case "redis":
		age(w.t, w.redis, by)
	case "postgres":
		(&world{t: w.t, config: Config{Store: w.store, DB: w.place}}).advance(by)
	}
	time.Sleep(by)
}

func (w *eventWorld) configure(s *eventStep) {
	w.retries = s.Configure.MaxRetries
	w.options.Window, w.options.Ordered = time.Duration(s.Configure.Window), s.Configure.Ordered
	if _, err := w.build(defaultGroup, w.options); (err != nil) != s.ExpectError {
		w.t.Errorf("configure %+v: %v", *s.Configure, err)
	}
	clear(w.consumers)
}

// fill puts events into the dead-letter queue that nobody could read.
func (w *eventWorld) fill(group string, n int) {
	for i := range n {
		e := (&eventJSON{ID: fmt.Sprint("dead-", i), Source: "/orders", Type: "order.created", Data: []byte(`{"n":1}`)}).event()
		if d := w.consumer(group, 0).Poison(w.t.Context(), e, deadletter.ReasonUndecodable, "filled"); !d.Acknowledge() {
			w.t.Fatalf("dead letter %d: %v", i, d.Err)
		}
	}
}

// redrive runs a job, or several after each other, until it ends. The engine
// stops by the ratio of failures among at least five outcomes; one failure of
// one is a canary.
func (w *eventWorld) redrive(s *eventStep) {
	t := w.t
	t.Helper()
	if s.StopAfter > 1 && s.StopAfter < 5 {
		t.Fatalf("stop_after_failures %d is not understood: the engine judges 1, or 5 and more", s.StopAfter)
	}
	until := time.Time{}
	if w.store == "postgres" { // whose letters are dated by its own clock
		until = w.clock()
	}
	job := queue.Job{Filter: queue.Filter{Queue: defaultGroup, Until: until}, By: "scenario", Rate: s.Rate, Canary: s.StopAfter == 1}
	if s.Redrive != "all" {
		job.Filter.EventID = s.Redrive
	}
	target := func(ctx context.Context, l deadletter.Letter) error {
		w.redriven = append(w.redriven, time.Now())
		return w.consumer(l.Destination, 0).Redrive(ctx, l)
	}
	r := queue.NewRedriver(w.db.DeadLetters(), "scenario", map[string]queue.Target{defaultGroup: target}, slog.New(slog.DiscardHandler))
	for range max(s.Times, 1) {
		j, err := r.Start(t.Context(), job, fmt.Sprint("job-", time.Now().UnixNano()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		for state := queue.JobRunning; state == queue.JobRunning; {
			time.Sleep(time.Second)
			now, err := w.db.DeadLetters().Job(t.Context(), j.ID)
			if err != nil {
				t.Fatal(err)
			}
			state = now.State
		}
		cancel()
		<-done
	}
}

// clock is PostgreSQL's.
func (w *eventWorld) clock() (now time.Time) {
	w.t.Helper()
	db, err := sql.Open("pgx", w.place)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(w.t.Context(), `SELECT now()`).Scan(&now); err != nil {
		w.t.Fatal(err)
	}
	return now
}
