package promretry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/promretry"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// receiver is a service with idempotency keys and a consumer, over one store.
type receiver struct {
	t        testing.TB
	store    *memstore.Idempotency
	handler  http.Handler
	consumer *consume.Consumer
}

// graves takes dead letters.
type graves struct{}

func (graves) Put(context.Context, deadletter.Letter) error { return nil }

// newReceiver returns one whose handler does as the path says, and whose consumer
// does as the event's type says.
func newReceiver(t testing.TB, m *promretry.Metrics) *receiver {
	t.Helper()
	r := &receiver{t: t, store: &memstore.Idempotency{}}
	m.Keys(r.store)
	var err error
	r.handler, err = idempotency.Handler(r.store, idempotency.Options{
		Scope: idempotency.SingleTenant(), Logger: slog.New(slog.DiscardHandler), Observe: m.Idempotency("till"),
	}, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		time.Sleep(20 * time.Millisecond)
		if req.URL.Path == "/lost" {
			idempotency.MarkUnknown(req.Context())
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.consumer, err = consume.New(func(_ context.Context, e consume.Event) error {
		switch e.Type {
		case "flaky":
			return forbear.Retryable(errFlaky, forbear.Hint{Floor: time.Minute})
		case "bad":
			return errFlaky
		}
		return nil
	}, consume.Options{
		Group: "shippers", Store: r.store, DLQ: graves{}, Retryer: retryer(t, m, "ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter()),
		Observe: m.Consumer("shippers"),
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Stalled(r.consumer)
	return r
}

func (r *receiver) post(path, key, body string) {
	req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	req.Header.Set(idempotency.Header, key)
	r.handler.ServeHTTP(httptest.NewRecorder(), req)
}

func (r *receiver) event(kind string) {
	r.consumer.Consume(context.Background(), consume.Event{ID: kind, Source: "shop", Type: kind})
}

const receivedKey = "planted-0b8a6a0e"

// receive makes each metric of keys and events move.
func (r *receiver) receive() {
	done := make(chan bool)
	go func() { r.post("/pay", receivedKey, "100"); close(done) }()
	time.Sleep(5 * time.Millisecond)
	r.post("/pay", receivedKey, "100") // waits for the first
	<-done
	r.post("/pay", receivedKey, "200") // another request
	r.post("/lost", "lost", "100")
	r.post("/lost", "lost", "100") // held
	for _, kind := range []string{"good", "good", "flaky", "flaky", "bad", "bad"} {
		r.event(kind)
	}
	dies := idempotency.Claim{
		ID: idempotency.ID{Scope: "event:shippers", Key: idempotency.Digest("x")}, Fingerprint: "event", Owner: "a", Lease: time.Second, Retention: time.Hour, Rerun: true,
	}
	if _, err := r.store.Claim(context.Background(), dies); err != nil {
		r.t.Error(err)
	}
	time.Sleep(time.Minute)
}

func TestKeysAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promretry.New(promretry.WithService("checkout"))
		r := newReceiver(t, m)
		r.receive()
		got := scrape(t, m)
		for _, want := range []string{
			`idempotency_requests_total{dependency="till",result="executed",service="checkout"} 2`,
			`idempotency_requests_total{dependency="till",result="replayed",service="checkout"} 1`,
			`idempotency_requests_total{dependency="till",result="mismatch",service="checkout"} 1`,
			`idempotency_requests_total{dependency="till",result="held",service="checkout"} 1`,
			`idempotency_requests_total{dependency="till",result="outcome_lost",service="checkout"} 0`,
			`idempotency_run_duration_seconds_sum{dependency="till",service="checkout"} 0.04`,
			`idempotency_wait_duration_seconds_count{dependency="till",service="checkout"} 1`,
			`idempotency_wait_duration_seconds_sum{dependency="till",service="checkout"} 0.015`,
			`consume_events_total{group="shippers",outcome="done",service="checkout"} 1`,
			`consume_events_total{group="shippers",outcome="duplicate",service="checkout"} 2`,
			`consume_events_total{group="shippers",outcome="retry",service="checkout"} 1`,
			`consume_events_total{group="shippers",outcome="waiting",service="checkout"} 1`,
			`consume_events_total{group="shippers",outcome="dead_lettered",service="checkout"} 1`,
			`consume_events_total{group="shippers",outcome="held",service="checkout"} 0`,
			`idempotency_held_keys{kind="request",service="checkout"} 1`,
			`idempotency_held_oldest_seconds{kind="request",service="checkout"} 60.02`,
			`idempotency_held_keys{kind="event",service="checkout"} 0`, // a dead letter is not one
			`idempotency_overdue_keys{kind="event",service="checkout"} 1`,
			`idempotency_overdue_oldest_seconds{kind="event",service="checkout"} 59`,
			`retry_attempt_duration_seconds_count{attempt="first",dependency="ledger",service="checkout"} 3`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the scrape lacks %s", want)
			}
		}
		if strings.Contains(got, "planted") {
			t.Error("a key is in the scrape")
		}
		if t.Failed() {
			t.Log(got)
		}
	})
}

// A store is counted every 15 s at most, and not told of when it is down.
func TestKeysAreCountedAtAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promretry.New()
		s := &counted{}
		m.Keys(s)
		for _, step := range []struct {
			wait  time.Duration
			err   error
			asked int
			want  string
		}{
			{0, nil, 1, `idempotency_held_keys{kind="request",service=""} 1`},
			{14 * time.Second, errFlaky, 1, `idempotency_held_keys{kind="request",service=""} 1`},
			{2 * time.Second, errFlaky, 2, ""},
			{14 * time.Second, nil, 2, ""},
			{2 * time.Second, nil, 3, `idempotency_held_keys{kind="request",service=""} 3`},
		} {
			time.Sleep(step.wait)
			s.err = step.err
			got := scrape(t, m)
			if s.asked != step.asked || !strings.Contains(got, step.want) || step.want == "" && strings.Contains(got, "idempotency_held_keys{") {
				t.Errorf("asked %d times, want %d; want %q in:\n%s", s.asked, step.asked, step.want, got)
			}
		}
		// One that hangs costs a scrape two seconds.
		s.hang = true
		time.Sleep(time.Minute)
		before := time.Now()
		if got := scrape(t, m); strings.Contains(got, "idempotency_held_keys{") || time.Since(before) != 2*time.Second {
			t.Errorf("after %v: %s", time.Since(before), got)
		}
	})
}

// counted is a store with as many held keys as it was asked times.
type counted struct {
	asked int
	err   error
	hang  bool
}

func (c *counted) Census(ctx context.Context) (idempotency.Census, error) {
	c.asked++
	if c.hang {
		<-ctx.Done()
		return idempotency.Census{}, errors.New("timed out")
	}
	return idempotency.Census{Requests: idempotency.Waiting{Held: c.asked}}, c.err
}
