package sqltest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

const (
	outage = 5 * time.Second // longer than a lease
	many   = 20
)

// effects counts what operations did, by their key.
type effects struct {
	mu sync.Mutex
	of map[string]int
}

func (e *effects) add(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[string]int{}
	}
	e.of[key]++
}

// once demands one effect of each of the keys, and no other.
func (e *effects) once(t *testing.T, keys []string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range keys {
		if e.of[k] != 1 {
			t.Errorf("%s took effect %d times", k, e.of[k])
		}
	}
	if len(e.of) != len(keys) {
		t.Errorf("effects of %d operations, want %d", len(e.of), len(keys))
	}
}

// completed waits until all records of a scope are completed, and returns them by
// the digest of their key.
func completed(t *testing.T, db *sqlstore.DB, scope string) map[string]idempotency.Record {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := db.Idempotency().List(t.Context(), idempotency.Filter{Scope: scope})
		byKey := map[string]idempotency.Record{}
		states := map[idempotency.State]int{}
		for _, r := range list {
			byKey[r.ID.Key] = r
			states[r.State]++
		}
		if err == nil && states[idempotency.Completed] == many && len(list) == many {
			return byKey
		}
		if time.Now().After(end) {
			t.Fatalf("records of %s: %v, %v; want %d completed", scope, states, err, many)
		}
	}
}

// A database that is away for longer than a lease, while twenty operations and twenty
// events are under way, makes no outcome unknown: each is done once, duplicates get
// the response during the outage, and the records are complete after it.
func TestOutageLosesNoOutcome(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	name := server.Database(t)
	db := open(t, name)
	const lease = 3 * time.Second
	quiet := slog.New(slog.DiscardHandler)
	goOn := make(chan struct{})
	var begun sync.WaitGroup
	begun.Add(2 * many)

	var done effects
	backlog := &idempotency.Backlog{Store: db.Idempotency(), Logger: quiet}
	h, err := idempotency.Handler(db.Idempotency(), idempotency.Options{Scope: idempotency.SingleTenant(), Lease: lease, StoreTimeout: time.Minute, Backlog: backlog, Logger: quiet},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get(idempotency.Header)
			done.add(key)
			begun.Done()
			<-goOn
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "paid "+key)
		}))
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(h)
	defer front.Close()
	post := func(key string) (status int, body string, header http.Header) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/pay", strings.NewReader(key))
		r.Header.Set(idempotency.Header, key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0, "", nil
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), resp.Header
	}

	var handled effects
	retryer, err := forbear.New("orders", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := consume.New(func(_ context.Context, e consume.Event) error {
		handled.add(e.ID)
		begun.Done()
		<-goOn
		return nil
	}, consume.Options{Group: "g", Store: db.Idempotency(), DLQ: db.DeadLetters(), Retryer: retryer, Lease: lease, Backlog: backlog})
	if err != nil {
		t.Fatal(err)
	}

	var keys, events []string
	var running sync.WaitGroup
	for i := range many {
		key, event := fmt.Sprint("key-", i), fmt.Sprint("event-", i)
		keys, events = append(keys, key), append(events, event)
		running.Go(func() {
			if status, body, _ := post(key); status != http.StatusCreated || body != "paid "+key {
				t.Errorf("%s: got %d %q", key, status, body)
			}
		})
		running.Go(func() {
			if d := consumer.Consume(t.Context(), consume.Event{ID: event, Source: "/test"}); d.Action != consume.Ack || d.Reason != "done" {
				t.Errorf("%s: got %+v", event, d)
			}
		})
	}
	begun.Wait()
	server.Halt(syscall.SIGQUIT) // a crash
	halted := time.Now()
	close(goOn)
	running.Wait()

	if s := backlog.Stats(); s.Waiting != 2*many || s.Bytes == 0 {
		t.Errorf("the backlog has %+v, want %d", s, 2*many)
	}
	for i := range many {
		status, body, header := post(keys[i])
		if status != http.StatusCreated || body != "paid "+keys[i] || header.Get("Content-Type") != "text/plain" || header.Get(idempotency.HeaderReplayed) != "true" {
			t.Errorf("a duplicate of %s during the outage: got %d %q", keys[i], status, body)
		}
		if d := consumer.Consume(t.Context(), consume.Event{ID: events[i], Source: "/test"}); d.Action != consume.Ack || !d.Duplicate {
			t.Errorf("a duplicate of %s during the outage: got %+v", events[i], d)
		}
	}
	if status, _, header := post("unknown"); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("another key during the outage: got %d, Retry-After %q", status, header.Get("Retry-After"))
	}
	time.Sleep(time.Until(halted.Add(outage)))
	server.Boot(t)

	after := open(t, name) // another process's eyes
	records := completed(t, after, "all")
	for _, key := range keys {
		rec, err := after.Idempotency().Get(t.Context(), records[idempotency.Digest(key)].ID)
		if err != nil || rec.Response == nil || rec.Response.Status != http.StatusCreated || string(rec.Response.Body) != "paid "+key {
			t.Errorf("%s is stored as %+v, %v", key, rec, err)
		}
		if status, body, _ := post(key); status != http.StatusCreated || body != "paid "+key {
			t.Errorf("a duplicate of %s after the outage: got %d %q", key, status, body)
		}
	}
	completed(t, after, "event:g")
	if held, err := after.Idempotency().List(t.Context(), idempotency.Filter{State: idempotency.Held}); err != nil || len(held) != 0 {
		t.Errorf("held after the outage: %v, %v", held, err)
	}
	for end := time.Now().Add(time.Minute); backlog.Stats() != (idempotency.Stats{}); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the backlog still has %+v", backlog.Stats())
		}
	}
	done.once(t, keys)
	handled.once(t, events)
}
